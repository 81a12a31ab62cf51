-- end_soon.sql: let the server end this transaction if it is left idle for so long; for one that is about to commit
-- params   idle_ms text
-- returns  one row without meaning
-- locks    none
-- index    none
select set_config('idle_in_transaction_session_timeout', %(idle_ms)s, true);
