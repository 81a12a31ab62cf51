"""Settings: one file; all that varies comes from the environment through env.py (SPEC, section 9)."""

from __future__ import annotations

import importlib.util
import os
import sys
import zoneinfo
from datetime import timedelta
from pathlib import Path
from typing import Any

from scheduler_project import env
from scheduler_project.lib import replica
from scheduler_project.lib.egress import Policy, Rules
from scheduler_project.lib.embedded_pg import DURABLE, THROWAWAY, EmbeddedPostgres
from scheduler_project.lib.logs import configure as configure_logs
from scheduler_project.lib.pg import ordinary_options, settings_from_url
from scheduler_project.lib.programs import Programs, read_variable_names

BASE_DIR = Path(__file__).resolve().parent.parent
VERSION = "0.1.0"

ENVIRONMENT = env.choice("ENV", "development", ["development", "production", "test"])
IS_PRODUCTION = ENVIRONMENT == "production"
IS_TEST = "PYTEST_VERSION" in os.environ or ENVIRONMENT == "test"
DEBUG = False

SECRET_KEY = env.secret("SECRET_KEY", development="development-only-" + "x" * 40, is_production=IS_PRODUCTION)
#: Earlier values of it: what they encrypted can still be read, and sessions they signed stay good.
SECRET_KEY_FALLBACKS = env.names("SECRET_KEY_FALLBACKS")
JWT_SECRET = env.secret("JWT_SECRET", development="development-only-" + "y" * 40, is_production=IS_PRODUCTION)

#: Shown in the head of every page, so that nobody mistakes one installation for another.
ENVIRONMENT_BADGE = env.text("ENVIRONMENT_BADGE", ENVIRONMENT)[:20]
API_HOST = env.text("API_HOST", "0.0.0.0")  # noqa: S104 - the specification's default
API_PORT = env.integer("API_PORT", 3000, at_least=1, at_most=65_535)
# On loopback unless told otherwise: no token is asked for, and the names of tenants stand in the labels.
METRICS_HOST = env.text("METRICS_HOST", "127.0.0.1")
METRICS_PORT = env.integer("METRICS_PORT", 9001, at_least=0, at_most=65_535)
#: If set, /metrics of the web answers only to requests that bear it.
METRICS_TOKEN = env.text("METRICS_TOKEN")
ALLOWED_HOSTS = env.names("ALLOWED_HOSTS", ["*"] if not IS_PRODUCTION else ["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.names("TRUSTED_ORIGINS")

# -- database -------------------------------------------------------------------------------------------------
DATABASE_URL = env.text("DATABASE_URL")
DATABASE_DIRECT_URL = env.text("DATABASE_DIRECT_URL") or DATABASE_URL
#: Two addresses: the first leads to a pooler, behind which a session may be another one after each transaction.
IS_POOLED = DATABASE_DIRECT_URL != DATABASE_URL
DATABASE_MAX_CONNECTIONS = env.integer("DATABASE_MAX_CONNECTIONS", 10, at_least=2, at_most=1_000)
_URL_FORM = "a PostgreSQL address such as postgresql://user:password@host:5432/database is needed"

EMBEDDED: EmbeddedPostgres | None = None
if DATABASE_URL:
    # The value is not repeated in a message: it may hold a password.
    DATABASE: dict[str, Any] = env.parsed("DATABASE_URL", DATABASE_URL, settings_from_url, _URL_FORM, is_secret=True)
    DATABASE_DIRECT: dict[str, Any] = env.parsed(
        "DATABASE_DIRECT_URL", DATABASE_DIRECT_URL, settings_from_url, _URL_FORM, is_secret=True
    )
else:
    EMBEDDED = EmbeddedPostgres(BASE_DIR, "test" if IS_TEST else "main", THROWAWAY if IS_TEST else DURABLE)
    DATABASE = {**EMBEDDED.django("punctual"), "OPTIONS": {}}
    DATABASE_DIRECT = {**DATABASE, "OPTIONS": {}}

DATABASES = {
    "default": {**DATABASE, "OPTIONS": ordinary_options(DATABASE), "CONN_HEALTH_CHECKS": True, "CONN_MAX_AGE": 60}
}
# A handler's .iterator() outside of a transaction would ask one session for the cursor of another.
DATABASES["default"]["DISABLE_SERVER_SIDE_CURSORS"] = IS_POOLED
if DATABASE_REPLICA_URL := env.text("DATABASE_REPLICA_URL"):
    _replica = env.parsed("DATABASE_REPLICA_URL", DATABASE_REPLICA_URL, settings_from_url, _URL_FORM, is_secret=True)
    DATABASES[replica.ALIAS] = replica.settings_of(_replica)
DATABASE_ROUTERS = ["scheduler_project.lib.replica.Router"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# -- worker and scheduler -------------------------------------------------------------------------------------
WORKER_POLL_INTERVAL_MS = env.integer("WORKER_POLL_INTERVAL_MS", 1_000, at_least=10, at_most=600_000)
WORKER_MAX_CONCURRENCY = env.integer("WORKER_MAX_CONCURRENCY", 10, at_least=1, at_most=1_000)
WORKER_HEARTBEAT_INTERVAL_SECS = env.integer("WORKER_HEARTBEAT_INTERVAL_SECS", 10, at_least=1, at_most=3_600)
WORKER_GRACEFUL_SHUTDOWN_TIMEOUT_SECS = env.integer(
    "WORKER_GRACEFUL_SHUTDOWN_TIMEOUT_SECS", 30, at_least=0, at_most=86_400
)
#: A running job that was asked to stop is made to after this time.
WORKER_CANCEL_GRACE_SECS = env.integer("WORKER_CANCEL_GRACE_SECS", 10, at_least=0, at_most=86_400)
#: A job whose worker was lost so often is at fault itself: dead letter, whatever attempts remain.
POISON_AFTER = env.integer("POISON_AFTER", 3, at_least=1, at_most=1_000)
#: A job that was lost with its worker runs in a process of its own from then on: if it is to blame, only that one dies.
WORKER_ISOLATE_LOST = env.boolean("WORKER_ISOLATE_LOST", default=True)
#: What a handler in a process of its own may take, beyond what the process begins with; 0 is no limit.
WORKER_PROCESS_MEMORY_MB = env.integer("WORKER_PROCESS_MEMORY_MB", 2_048, at_least=0, at_most=1_048_576)
SCHEDULER_POLL_INTERVAL_MS = env.integer("SCHEDULER_POLL_INTERVAL_MS", 2_000, at_least=10, at_most=600_000)
SCHEDULER_LEASE_REAPER_INTERVAL_SECS = env.integer(
    "SCHEDULER_LEASE_REAPER_INTERVAL_SECS", 15, at_least=1, at_most=3_600
)
SCHEDULER_ADVISORY_LOCK_ID = env.integer("SCHEDULER_ADVISORY_LOCK_ID", 42, at_least=1, at_most=2**62)
#: An open circuit is probed by one job after this time.
BREAKER_COOL_DOWN_SECS = env.integer("BREAKER_COOL_DOWN_SECS", 30, at_least=1, at_most=86_400)
LISTEN = env.boolean("LISTEN", default=True)  # false: poll only, for poolers that swallow LISTEN
RETENTION_DAYS = env.integer("RETENTION_DAYS", 30, at_least=1, at_most=3_650)
LOG_RETENTION_DAYS = env.integer("LOG_RETENTION_DAYS", 90, at_least=1, at_most=3_650)
ARCHIVE_RETENTION_DAYS = env.integer("ARCHIVE_RETENTION_DAYS", 365, at_least=1, at_most=36_500)
HANDLER_MODULES = env.names("HANDLER_MODULES")
_RULES = "addresses, networks and host patterns such as 10.1.0.0/16 or *.example.com are needed, separated by commas"
EGRESS_POLICY = Policy(
    allow=env.parsed("EGRESS_ALLOW", env.text("EGRESS_ALLOW"), Rules.of_text, _RULES),
    deny=env.parsed("EGRESS_DENY", env.text("EGRESS_DENY"), Rules.of_text, _RULES),
)
# Queues of Django's tasks: the name in @task(queue_name=…) and the queue it stands for.
TASK_QUEUES = env.pairs("TASK_QUEUES", "pairs such as default=acme/web/default are needed, separated by commas")
if TASK_QUEUES:
    TASKS = {"default": {"BACKEND": "jobs.tasks_backend.PunctualBackend", "OPTIONS": {"queues": TASK_QUEUES}}}
#: Programs that shell.command may run; none: it is off.
SHELL_PATH = env.text("SHELL_PATH") or os.environ.get("PATH", os.defpath)
SHELL_PROGRAMS = env.parsed(
    "SHELL_COMMANDS",
    env.text("SHELL_COMMANDS"),
    lambda value: Programs.of([part.strip() for part in value.split(",") if part.strip()], SHELL_PATH),
    "names of programs or absolute paths without '.' and '..' are needed, separated by commas",
)
SHELL_ENV = env.parsed(
    "SHELL_ENV",
    env.text("SHELL_ENV", "LANG,LC_ALL,TZ"),
    read_variable_names,
    "names of environment variables are needed, separated by commas; never those that begin with APP_",
)

# -- Django ---------------------------------------------------------------------------------------------------
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "csp",
    "django_htmx",
    "django_tasks",
    "accounts",
    "orgs",
    "queues",
    "dlq",
    "jobs",
]
MIDDLEWARE = [
    "scheduler_project.middleware.RequestIdMiddleware",
    "scheduler_project.middleware.ProbeMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "scheduler_project.lib.web.viewer.ViewerMiddleware",
    "scheduler_project.middleware.DatabaseDownMiddleware",
]
ROOT_URLCONF = "scheduler_project.urls"
WSGI_APPLICATION = "scheduler_project.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "jobs.web.shell.shell",
            ],
            "builtins": ["django.templatetags.static", "scheduler_project.lib.web.tags"],
        },
    }
]
APPEND_SLASH = False
DATA_UPLOAD_MAX_MEMORY_SIZE = 5 * 1024 * 1024

AUTH_USER_MODEL = "accounts.User"
LOGIN_URL = "/login"
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
if "PYTEST_VERSION" in os.environ:  # hashing a hundred passwords well would be most of the suite's time
    PASSWORD_HASHERS.insert(0, "django.contrib.auth.hashers.MD5PasswordHasher")
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 8}},
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]

# The pinned tzdata package, not the host's files, which may be years old: schedules must not depend on the host.
zoneinfo.reset_tzpath(())

LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"

STATIC_URL = "/static/"
STATIC_ROOT = BASE_DIR / "build" / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
# Outside production files are served as they lie; in production collectstatic puts them into STATIC_ROOT.
WHITENOISE_USE_FINDERS = WHITENOISE_AUTOREFRESH = not IS_PRODUCTION

# -- security -------------------------------------------------------------------------------------------------
SECURE_SSL_REDIRECT = env.boolean("SSL_REDIRECT", default=IS_PRODUCTION)
SECURE_HSTS_SECONDS = 31_536_000 if SECURE_SSL_REDIRECT else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = SECURE_SSL_REDIRECT
BEHIND_PROXY = env.boolean("BEHIND_PROXY", default=False)
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if BEHIND_PROXY else None
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = IS_PRODUCTION
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
X_FRAME_OPTIONS = "DENY"
CSRF_FAILURE_VIEW = "scheduler_project.views.csrf_failure"
#: Our pages hold no inline script or style. Django admin keeps its own ways; /api/docs sets its own policy.
CONTENT_SECURITY_POLICY = {
    "EXCLUDE_URL_PREFIXES": ["/admin/"],
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
        "base-uri": ["'none'"],
    },
}

# -- REST API -------------------------------------------------------------------------------------------------
# Tokens a minute, 0 is no limit. The tests' clients have none unless a test sets one.
_UNLIMITED = "PYTEST_VERSION" in os.environ
RATE_READ_PER_MIN = env.integer("RATE_READ_PER_MIN", 0 if _UNLIMITED else 6_000, at_least=0, at_most=10**9)
RATE_SUBMIT_PER_MIN = env.integer("RATE_SUBMIT_PER_MIN", 0 if _UNLIMITED else 60_000, at_least=0, at_most=10**9)
RATE_LOGIN_PER_MIN = env.integer("RATE_LOGIN_PER_MIN", 0 if _UNLIMITED else 10, at_least=0, at_most=10**9)
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "accounts.authentication.BearerAuthentication",
        "orgs.authentication.ApiKeyAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_PARSER_CLASSES": ["scheduler_project.lib.rest.StrictJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_SCHEMA_CLASS": "scheduler_project.lib.rest.schema.Schema",
    "DEFAULT_THROTTLE_CLASSES": ["orgs.throttling.Throttle"],
    "EXCEPTION_HANDLER": "scheduler_project.lib.rest.exception_handler",
    "UNAUTHENTICATED_USER": None,
    "COERCE_DECIMAL_TO_STRING": False,
}
#: Requests may ask to wait for a job up to 30 s; less for proxies that are less patient.
LONG_POLL_MAX_MS = env.integer("LONG_POLL_MAX_MS", 30_000, at_least=0, at_most=30_000)
SPECTACULAR_SETTINGS = {
    "TITLE": "Punctual",
    "DESCRIPTION": "Jobs that run when they should. Changes are additive; clients ignore fields they do not know.",
    "VERSION": VERSION,
    "OAS_VERSION": "3.1.1",
    "SCHEMA_PATH_PREFIX": "/api",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "ENFORCE_NON_BLANK_FIELDS": True,
    "POSTPROCESSING_HOOKS": [],
    "APPEND_COMPONENTS": {
        "securitySchemes": {
            "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
            "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
        }
    },
}
SIMPLE_JWT = {
    "ACCESS_TOKEN_LIFETIME": timedelta(
        seconds=env.integer("JWT_ACCESS_EXPIRY_SECS", 900, at_least=1, at_most=31_536_000)
    ),
    "REFRESH_TOKEN_LIFETIME": timedelta(
        seconds=env.integer("JWT_REFRESH_EXPIRY_SECS", 604_800, at_least=1, at_most=31_536_000)
    ),
    "SIGNING_KEY": JWT_SECRET,
    "USER_ID_CLAIM": "sub",
    "UPDATE_LAST_LOGIN": False,
}

# -- live events and the web process --------------------------------------------------------------------------------
#: Threads for pages and REST; each may hold a database connection, as do the listener and the thread of the sockets.
WEB_THREADS = max(1, min(8, DATABASE_MAX_CONNECTIONS - 2))
EVENTS_MAX_CONNECTIONS = env.integer("EVENTS_MAX_CONNECTIONS", 1_000, at_least=0, at_most=100_000)
#: Roles, keys and sessions of listeners are looked at again this often, spread a little.
EVENTS_RECHECK_SECS = env.integer("EVENTS_RECHECK_SECS", 30, at_least=1, at_most=50)
EVENTS_MAX_PER_USER = env.integer("EVENTS_MAX_PER_USER", 50, at_least=1, at_most=100_000)

# -- e-mail: of alerts, through Django's own settings -------------------------------------------------------------
#: Without a host mails are written to the worker's output; in production there must be a mail server.
EMAIL_HOST = env.text("EMAIL_HOST") or "localhost"
EMAIL_BACKEND = (
    "django.core.mail.backends.smtp.EmailBackend"
    if IS_PRODUCTION or env.text("EMAIL_HOST")
    else "django.core.mail.backends.console.EmailBackend"
)
EMAIL_PORT = env.integer("EMAIL_PORT", 25, at_least=1, at_most=65_535)
EMAIL_HOST_USER = env.text("EMAIL_USER")
EMAIL_HOST_PASSWORD = env.text("EMAIL_PASSWORD")
_EMAIL_SECURITY = env.choice("EMAIL_SECURITY", "none", ["none", "starttls", "tls"])
EMAIL_USE_TLS, EMAIL_USE_SSL = _EMAIL_SECURITY == "starttls", _EMAIL_SECURITY == "tls"
EMAIL_TIMEOUT = 30
DEFAULT_FROM_EMAIL = SERVER_EMAIL = env.text("EMAIL_FROM", "punctual@localhost")

# -- logs -----------------------------------------------------------------------------------------------------
LOG_LEVEL = env.choice("LOG_LEVEL", "info", ["debug", "info", "warning", "error"])
LOG_FORMAT = env.choice("LOG_FORMAT", "json", ["json", "pretty"])
LOGGING_CONFIG = None
TRACING = env.boolean("TRACING", default=False)
if TRACING and importlib.util.find_spec("opentelemetry") is None:
    raise env.BadSetting("TRACING", "true", "the package opentelemetry-api must be installed")
configure_logs(level=LOG_LEVEL, pretty=LOG_FORMAT == "pretty", stream=sys.stderr)
