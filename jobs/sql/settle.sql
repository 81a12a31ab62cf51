-- settle.sql: end attempts: next status, history, dead letters, events to tell and increments of the statistics, in one
--              statement
-- params   arrays of one length: ids, tokens, statuses (next one), outcomes (of the attempt; null = never begun, no
--          history), used (0 or 1 attempt), delays_s (for scheduled), results, errors, stacks, reasons (of a dead
--          letter), claimed_ats, ran_ms (null = unknown), ago_ms (since the handler ended), worker_ids, losses (0, or 1
--          if the attempt's process died)
-- returns  id, status, token    of the rows whose token still held; a ghost's rows are missing. One more row, without an
--          id, left the ended parents in a setting of this transaction, for release.sql right behind
-- locks    the rows until commit
-- index    primary key of jobs. Fenced by id and token alone: the token is null in every row that is not in flight,
--          and a status in the fence let a cached plan turn quadratic.
with ended as (
    update jobs as job
       set status           = case when job.cancel_requested_at is null then verdict.status else 'cancelled' end,
           attempt_count    = job.attempt_count + verdict.used,
           lost_count       = job.lost_count + verdict.losses,
           run_at           = case when verdict.status = 'scheduled'
                                   then statement_timestamp() + make_interval(secs => verdict.delay_s)
                                   else job.run_at end,
           result           = verdict.result::jsonb,
           error_message    = verdict.error,
           locked_by        = null,
           locked_at        = null,
           lease_token      = null,
           lease_expires_at = null,
           updated_at       = statement_timestamp(),
           completed_at     = case when job.cancel_requested_at is not null
                                     or verdict.status in ('completed', 'failed', 'dead_letter', 'cancelled')
                                   then statement_timestamp() end
      from unnest(%(ids)s::uuid[], %(tokens)s::uuid[], %(statuses)s::text[], %(outcomes)s::text[], %(used)s::int[],
                  %(delays_s)s::float8[], %(results)s::text[], %(errors)s::text[], %(stacks)s::text[],
                  %(reasons)s::text[], %(claimed_ats)s::timestamptz[], %(ran_ms)s::float8[], %(ago_ms)s::float8[],
                  %(worker_ids)s::uuid[], %(losses)s::int[])
        as verdict(id, token, status, outcome, used, delay_s, result, error, stack, reason, claimed_at, ran_ms,
                   ago_ms, worker_id, losses)
     where job.id = verdict.id
       and job.lease_token = verdict.token
    returning job.id, job.project_id, job.queue_id, job.job_type, job.status, job.attempt_count, job.fencing_number,
              job.has_dependants, job.run_at, job.result, job.error_message,
              case when job.status = 'dead_letter' then job.payload end as payload,
              verdict.token, verdict.outcome, verdict.used, verdict.stack, verdict.reason, verdict.claimed_at,
              verdict.ran_ms, verdict.worker_id,
              statement_timestamp() - make_interval(secs => verdict.ago_ms / 1000.0) as ended_at
), recorded as (
    insert into job_executions (id, project_id, job_id, worker_id, attempt_number, fencing_number, status, claimed_at,
                                started_at, finished_at, duration_ms, error_message, error_stack, result, created_at)
    select token, project_id, id, worker_id, attempt_count + 1 - used, fencing_number, outcome, claimed_at,
           -- Never before the claim: the worker measures intervals, and rounds them.
           case when ran_ms is not null
                then greatest(claimed_at, ended_at - make_interval(secs => ran_ms / 1000.0)) end,
           greatest(claimed_at, ended_at), ran_ms, error_message, stack, result, statement_timestamp()
      from ended
     where outcome is not null
), buried as (
    insert into dead_letter_queue (id, project_id, job_id, queue_id, job_type, payload_snapshot, failure_reason,
                                   attempt_count, last_error, moved_at, resolved)
    select token, project_id, id, queue_id, job_type, payload, reason, attempt_count, coalesce(error_message, ''),
           statement_timestamp(), false
      from ended
     where status = 'dead_letter'
), counted as (
    -- Of an attempt that is retried nobody knows any more how long it waited: its run_at is the next one's.
    insert into job_stat_deltas (project_id, queue_id, job_type, at, started, completed, failed, retried, dead,
                                 cancelled, expired, waits_ms, runs_ms)
    select project_id, queue_id, job_type, statement_timestamp(), count(outcome),
           count(*) filter (where outcome = 'completed'),
           count(*) filter (where outcome = 'failed'),
           count(*) filter (where outcome in ('failed', 'lost') and status in ('scheduled', 'queued')),
           count(*) filter (where status = 'dead_letter'),
           count(*) filter (where status = 'cancelled'),
           count(*) filter (where outcome = 'lost'),
           array_agg(extract(epoch from claimed_at - run_at)::float8 * 1000)
               filter (where outcome is not null and status <> 'scheduled'),
           array_agg(ran_ms) filter (where ran_ms is not null)
      from ended
     group by project_id, queue_id, job_type
    having count(outcome) > 0 or bool_or(status in ('cancelled', 'dead_letter'))
-- part told
), told as (
    -- For whoever subscribed to the project's events. Left out where no job of the batch ends badly: even a part that
    -- writes nothing has to be planned.
    insert into outgoing_events (id, project_id, type, at, queue_id, data)
    select token, project_id, 'job.' || status, statement_timestamp(), queue_id,
           jsonb_build_object('job_id', id, 'queue_id', queue_id, 'job_type', job_type, 'status', status,
                              'attempts', attempt_count, 'reason', reason, 'error', left(error_message, 500))
      from ended
     where status in ('dead_letter', 'failed')
       and exists (select from event_subscriptions as wanted
                    where wanted.project_id = ended.project_id and wanted.is_active)
-- end of told
)
select id::text, status, token::text
  from ended
 union all
select null, set_config('punctual.ended_parents', coalesce(string_agg(id::text, ',') filter (where has_dependants), ''),
                        true), null
  from ended;
