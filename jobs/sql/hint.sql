-- hint.sql: wake whoever listens; a hint, never the truth
-- params   topic text: "work" and a queue's id, "cancel" and a job's id, or "due"
-- returns  nothing of use
-- locks    the database's notification lock at commit, so it goes in a transaction of its own and never once a job
-- index    none
select pg_notify('punctual', %(topic)s);
