"""The life cycle: one file for each verb, and nothing else changes a job's status.

::

    (new) ──submit──► scheduled ──promote──► queued ──claim──► claimed ──start──► running
                          ▲                    ▲ │                │                  │
                          │                    │ cancel           └──────settle──────┤
                          │                    │ ▼                                   │
                          └── retry, snooze ───┼─────────────────────────────────────┤
                                  give back ───┘                                     ▼
                                               ◄──requeue── completed failed dead_letter cancelled

``exchange`` sends a worker's settles, starts, log lines and its next claim in one round trip. ``reap`` settles
attempts whose lease ran out. The arrows themselves stand in ``jobs.states``.
"""
