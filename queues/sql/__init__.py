"""The statements of the queues wing, loaded once. Only ``queues.services`` may import this room."""

from pathlib import Path

from scheduler_project.lib.statements import load

_HERE = Path(__file__).parent

DELETE_RETRY_POLICY = load(_HERE, "delete_retry_policy")
LOCK_QUEUE = load(_HERE, "lock_queue")
