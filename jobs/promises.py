"""The engine's promises, each with the name of the proof that checks it: ``manage.py prove NAME``.

Here, and not in the proofs, so that whoever only shows them need not load what stages the faults.
"""

PROMISES = {
    "claim": "No job is handed to two workers, and none is forgotten.",
    "crash": "Workers are killed at any moment: every job ends, and the history tells of each attempt.",
    "fencing": "A worker that freezes past its leases and wakes up changes nothing, nor does it in a sink that looks.",
    "exactly-once": "What a transactional handler writes is there once for each job, under kills and freezes.",
    "shutdown": "Deploys under load lose no job and burn no attempt.",
    "failover": "The leading scheduler dies, freezes or vanishes: another takes over, nothing due is lost or doubled.",
    "limits": "Limits of queues and keys and rates hold over all workers while they are killed, and no slot leaks.",
    "cron": "Schedules fire when a clock on the wall says so, in every zone, also when the clocks change.",
    "misfire": "No due time is passed over in silence: the ledger has each, by its policy's rule and with a reason.",
    "dag": "Jobs that wait for others begin after those have ended, and end as the graph says, under kills.",
    "batch": "The callbacks of a batch come once, after its last job, whoever looks at it at the same time.",
    "latency": "A job begins within milliseconds of its submission or its due time, not at the next poll.",
    "database": "The database restarts, crashes or fails over: nothing is lost, and no process needs a restart.",
    "breaker": "A target that is down is hardly called, costs no attempt meanwhile, and one job at a time probes it.",
    "egress": "A job may name any address: nothing that is closed is reached, however it is written.",
    "fairness": "One project's long line of jobs does not make another wait; two long lines share by time used.",
    "rot": "A claim costs the same with a long history, with far plans, and under an old snapshot.",
    "explain": 'Why a job does not run is said in full; "nothing keeps it" is said of what the next claim takes.',
    "tenancy": "No stranger sees or changes anything of another organization, by whatever path of the product.",
    "redrive": (
        "Dead letters that are redriven run again once each, under kills of the leader; if asked so, a canary of them "
        "first and no faster than a pace; and it stops when told."
    ),
}
