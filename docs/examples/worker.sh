#!/bin/sh
# A worker over HTTP in POSIX shell and curl. It claims one job after the other and runs a command for each:
#   PUNCTUAL_URL=https://host PUNCTUAL_KEY=pk_live_... ./worker.sh queue command [argument ...]
# The command gets the payload on its standard input, and JOB_ID, JOB_TYPE and JOB_ATTEMPT in its environment. Its exit
# code ends the job: 0 completed, 75 come back in a minute, 65 failed for good, all others failed and tried again.
# SIGTERM lets the job in hand end first. BEAT_S (seconds between heartbeats) and WAIT_MS are for experts.
set -u
queue=$1
shift
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'stop=yes' TERM INT
(umask 077 && printf 'header = "X-API-Key: %s"\n' "$PUNCTUAL_KEY" >"$dir/curl") # not on a command line for all to see

uuid() { od -An -N16 -tx1 /dev/urandom | tr -d ' \n' | sed 's/^\(.\{8\}\)\(....\)\(....\)\(....\)/\1-\2-\3-\4-/'; }
post() { # path; the body on standard input; curl itself tries again, after Retry-After, what is worth trying again
    path=$1 && shift
    curl -sS -K "$dir/curl" -H 'Content-Type: application/json' --max-time 60 --retry 8 --retry-connrefused \
        --data-binary @- "$@" "$PUNCTUAL_URL/api/worker/$path"
}
text() { after=${answer#*\"$1\":\"} && printf %s "${after%%\"*}"; } # the first text of that name in the answer
number() { after=${answer#*\"$1\":} && printf %s "${after%%[,\}]*}"; }
lease() { printf '{"worker_id":"%s","%s":[{"id":"%s","lease_token":"%s"%s}]}' "$worker" "$1" "$id" "$token" "$2"; }

beat() { # until the job ends: ask for more time; stop the command if its lease is lost or somebody cancelled it
    while sleep "$every"; do
        heard=$(lease leases '' | post heartbeat -f) || continue
        case $heard in
        *'"status":"ok"'*) continue ;;
        *'"status":"lost"'*) echo lost >"$dir/told" ;;
        *'"status":"cancel_requested"'*) echo cancel >"$dir/told" ;;
        esac
        kill "$command" 2>/dev/null && return
    done
}

worker=$(uuid) claim=$(uuid) stop=''
while [ -z "$stop" ]; do
    wish='{"worker_id":"%s","claim_id":"%s","queues":["%s"],"wait_ms":%s,"info":{"name":"worker.sh","pid":%s}}'
    # shellcheck disable=SC2059 # the format is ours; without an answer the same claim is sent again
    answer=$(printf "$wish" "$worker" "$claim" "$queue" "${WAIT_MS:-20000}" $$ | post claim -f) || { sleep 1 && continue; }
    claim=$(uuid)
    case ${answer%%\"jobs\":*} in *'"directive":"drain"'*) break ;; esac
    case $answer in *'"jobs":[]}') sleep $(($(number retry_after_ms) / 1000)) && continue ;; esac
    id=$(text id) token=$(text lease_token) payload=${answer#*\"payload\":}
    every=${BEAT_S:-$(($(number heartbeat_every_ms) / 1000))}
    [ "$every" -gt 0 ] || every=1
    printf %s "${payload%\}]\}}" >"$dir/payload"
    rm -f "$dir/told"
    JOB_ID=$id JOB_TYPE=$(text job_type) JOB_ATTEMPT=$(number attempt) "$@" <"$dir/payload" &
    command=$!
    beat >/dev/null 2>&1 &
    beat=$!
    while wait "$command"; code=$?; kill -0 "$command" 2>/dev/null; do :; done # again after a signal
    kill "$beat" 2>/dev/null
    case $code$(cat "$dir/told" 2>/dev/null) in
    *lost) echo "$id: lease lost" && continue ;;
    *cancel) end=',"outcome":"cancelled"' ;;
    0) end=',"outcome":"completed"' ;;
    75) end=',"outcome":"snoozed","retry_after_s":60' ;;
    65) end=',"outcome":"failed","error":{"message":"exit code 65","retryable":false}' ;;
    *) end=",\"outcome\":\"failed\",\"error\":{\"message\":\"exit code $code\"}" ;;
    esac
    echo "$id: exit code $code, answered $(lease results "$end" | post finish -o /dev/null -w '%{http_code}')"
done
answer=$(printf '{"worker_id":"%s","state":"stopped"}' "$worker" | post heartbeat -f)
