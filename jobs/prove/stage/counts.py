"""What several proofs count."""

COMPLETED = "select count(*) from jobs where status = 'completed'"
COMPLETED_TWICE = """
select count(*) from (select from job_executions where status = 'completed' group by job_id having count(*) > 1) as more
"""
#: By the traces of the handlers, which the engine knows nothing of.
STARTED_TWICE = """
select count(*) from (select from prove_effects where kind = 'start' group by job_id having count(*) > 1) as more
"""
#: Attempts used up = rows of the history.
UNTRUE_HISTORIES = """
select count(*) from jobs
 where attempt_count <> (select count(*) from job_executions as attempt where attempt.job_id = jobs.id)
"""
