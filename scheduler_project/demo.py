"""What the demo tells its user: where it is, who can log in, how to submit a job.

All of it is for development and known to everybody; the sample data is refused in production.
"""

from __future__ import annotations

DEMO_API_KEY = "pk_demo_development_only_acme_corp_web_app"
"""The well-known key of the sample project Acme Corp / Web App; ``manage.py seed`` stores its hash."""

DEMO_PASSWORD = "password123"  # noqa: S105 - published in the specification
DEMO_ACCOUNTS = (
    ("admin@example.com", "owner of Acme Corp"),
    ("dev@example.com", "admin"),
    ("viewer@example.com", "viewer, may look but not touch"),
)
QUEUE, JOB_TYPE, PAYLOAD = "acme-corp/web-app/default", "test.echo", '{"hello": "world"}'

_JOB = f'{{"queue": "{QUEUE}", "job_type": "{JOB_TYPE}", "payload": {PAYLOAD}}}'
_LOGIN = f'{{"email": "{DEMO_ACCOUNTS[1][0]}", "password": "{DEMO_PASSWORD}"}}'
_JSON = "-H 'Content-Type: application/json'"
_RULE = "─" * 100


def banner(url: str, *, has_sample_data: bool) -> str:
    """The text for a demo that is ready at ``url``."""
    guide = _guide(url) if has_sample_data else ["No sample data: manage.py createsuperuser makes a first account."]
    lines = ["", f"Punctual is ready: {url}/", "", *guide, "", "Ctrl-C stops everything.", ""]
    return "\n".join([_RULE, *(f"  {line}".rstrip() for line in lines), _RULE, ""])


def _guide(url: str) -> list[str]:
    return [
        f"The dashboard: {url}/login (password {DEMO_PASSWORD})",
        *(f"  {email:<20} {role}" for email, role in DEMO_ACCOUNTS),
        "",
        "Submit a job with the sample project's API key:",
        f"  curl -s -X POST {url}/api/jobs -H 'X-API-Key: {DEMO_API_KEY}' {_JSON} -d '{_JOB}'",
        "",
        "or as a person:",
        f"  TOKEN=$(curl -s -X POST {url}/api/auth/login {_JSON} -d '{_LOGIN}' | {_READ_ACCESS})",
        f"  curl -s -X POST {url}/api/jobs -H \"Authorization: Bearer $TOKEN\" {_JSON} -d '{_JOB}'",
        "",
        "or from the shell:",
        f"  .venv/bin/python manage.py submit {JOB_TYPE} --queue {QUEUE} --payload '{PAYLOAD}' --wait",
    ]


# No tool beyond those of any Unix: jq is not everywhere.
_READ_ACCESS = r"""sed 's/.*"access": *"\([^"]*\)".*/\1/'"""
