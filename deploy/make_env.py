"""Writes the secrets that docker-compose.yml asks for, fresh at each call: python3 deploy/make_env.py > .env"""

import secrets
import sys

NAMES = ("POSTGRES_PASSWORD", "APP_SECRET_KEY", "APP_JWT_SECRET", "APP_METRICS_TOKEN", "GRAFANA_PASSWORD")

for name in NAMES:
    sys.stdout.write(f"{name}={secrets.token_urlsafe(48)}\n")
