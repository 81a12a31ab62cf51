"""The statements of the engine, loaded once. Only their keepers may import this room (pyproject, contract "vault")."""

from pathlib import Path

from scheduler_project.lib.statements import load

_HERE = Path(__file__).parent

ARCHIVE = load(_HERE, "archive")
BEAT = load(_HERE, "beat")
CANCEL = load(_HERE, "cancel")
CLAIM = load(_HERE, "claim")
CLAIMED_UNKNOWN = load(_HERE, "claimed_unknown")
DEPOSE = load(_HERE, "depose")
DESCENDANTS = load(_HERE, "descendants")
DROP_MONTHS = load(_HERE, "drop_months")
DUE_NEXT = load(_HERE, "due_next")
ENSURE_MONTHS = load(_HERE, "ensure_months")
EXPIRED = load(_HERE, "expired")
EXTEND_LEASES = load(_HERE, "extend_leases")
EXTEND_LEASES_OF_WORKER = load(_HERE, "extend_leases_of_worker")
HINT = load(_HERE, "hint")
HOLD = load(_HERE, "hold")
JOBS_AHEAD = load(_HERE, "jobs_ahead")
JOBS_OF_OPERATION = load(_HERE, "jobs_of_operation")
LEAD = load(_HERE, "lead")
LOG_LINES = load(_HERE, "log_lines")
OPEN_QUEUES = load(_HERE, "open_queues")
PAGE_OF_JOBS = load(_HERE, "page_of_jobs")
PAGE_OF_QUEUED = load(_HERE, "page_of_queued")
PAGE_OF_TYPE = load(_HERE, "page_of_type")
PROGRESS = load(_HERE, "progress")
PROMOTE = load(_HERE, "promote")
PRUNE_HEARTBEATS = load(_HERE, "prune_heartbeats")
READY_QUEUES = load(_HERE, "ready_queues")
RELEASE = load(_HERE, "release")
RELEASE_OF = load(_HERE, "release_of")
RENEW_TERM = load(_HERE, "renew_term")
REQUEUE = load(_HERE, "requeue")
RETIRE_WORKERS = load(_HERE, "retire_workers")
SAME_WORK = load(_HERE, "same_work")
SETTLE = load(_HERE, "settle")
START = load(_HERE, "start")
SUBMIT = load(_HERE, "submit")
