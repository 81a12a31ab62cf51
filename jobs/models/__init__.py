"""The tables of the jobs wing."""

from jobs.models.alert import Alert, AlertRule
from jobs.models.archive import ArchivedJob
from jobs.models.batch import JobBatch
from jobs.models.breaker import CircuitBreaker
from jobs.models.dependency import JobDependency
from jobs.models.event_watcher import EventWatcher
from jobs.models.execution import JobExecution, JobLog
from jobs.models.job import Job
from jobs.models.operation import Operation
from jobs.models.outgoing import NOTICES_QUEUE, EventSubscription, EventType, OutgoingEvent
from jobs.models.proof_result import ProofResult
from jobs.models.remote import WorkerClaim
from jobs.models.scheduled_job import ScheduledJob, ScheduleFire
from jobs.models.statistics import WHOLE_PROJECT, JobStat, JobStatDelta, QueueDepth, QueueStat
from jobs.models.worker import LeaderTerm, Worker, WorkerHeartbeat

__all__ = [
    "NOTICES_QUEUE",
    "WHOLE_PROJECT",
    "Alert",
    "AlertRule",
    "ArchivedJob",
    "CircuitBreaker",
    "EventSubscription",
    "EventType",
    "EventWatcher",
    "Job",
    "JobBatch",
    "JobDependency",
    "JobExecution",
    "JobLog",
    "JobStat",
    "JobStatDelta",
    "LeaderTerm",
    "Operation",
    "OutgoingEvent",
    "ProofResult",
    "QueueDepth",
    "QueueStat",
    "ScheduleFire",
    "ScheduledJob",
    "Worker",
    "WorkerClaim",
    "WorkerHeartbeat",
]
