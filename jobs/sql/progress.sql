-- progress.sql: how far running jobs are
-- params   ids uuid[], tokens uuid[], percents int[], notes text[]
-- returns  nothing
-- locks    the rows until commit
-- index    primary key of jobs; the lease token is the fence; no index holds these columns
update jobs as job
   set progress_percent = news.percent, progress_note = news.note
  from unnest(%(ids)s::uuid[], %(tokens)s::uuid[], %(percents)s::int[], %(notes)s::text[])
    as news(id, token, percent, note)
 where job.id = news.id
   and job.lease_token = news.token;
