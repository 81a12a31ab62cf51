"""The engine's promises, each with the name of the proof that checks it: ``manage.py prove NAME``.

Here, and not in the proofs, so that whoever only shows them need not load what stages the faults.
"""

PROMISES = {
    "claim": "No job is handed to two workers, and none is forgotten.",
    "crash": "Workers are killed at any moment: every job ends, and the history tells of each attempt.",
    "fencing": "A worker that freezes past its leases and wakes up changes nothing, nor does it in a sink that looks.",
    "shutdown": "Deploys under load lose no job and burn no attempt.",
    "failover": "The leading scheduler is killed or freezes: another takes over, and nothing due is lost or doubled.",
    "limits": "Limits of queues and keys and rates hold over all workers while they are killed, and no slot leaks.",
    "cron": "Schedules fire when a clock on the wall says so, in every zone, also when the clocks change.",
    "misfire": "No due time is passed over in silence: the ledger has each, by its policy's rule and with a reason.",
    "dag": "Jobs that wait for others begin after those have ended, and end as the graph says, under kills.",
    "batch": "The callbacks of a batch come once, after its last job, whoever looks at it at the same time.",
    "latency": "A job begins within milliseconds of its submission or its due time, not at the next poll.",
}
