-- lock_queue.sql: wait until no claim of this queue is under way, and let none begin
-- params   lock_class int (queues.locks.QUEUE_LOCK_CLASS), queue_id uuid
-- returns  nothing of use
-- locks    the queue's advisory lock, alone, until commit; claims hold it shared while they run (open_queues.sql)
-- index    none
select pg_advisory_xact_lock(%(lock_class)s, hashtext(%(queue_id)s::text));
