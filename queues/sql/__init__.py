"""The statements of the queues wing, loaded once. Only its services and selectors may import this room."""

from pathlib import Path

from scheduler_project.lib.statements import load

_HERE = Path(__file__).parent

DELETE_RETRY_POLICY = load(_HERE, "delete_retry_policy")
LOCK_QUEUE = load(_HERE, "lock_queue")
QUEUE_OF_KEY = load(_HERE, "queue_of_key")
