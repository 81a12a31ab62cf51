"""A job may name any address: nothing that is closed is reached, however it is written and wherever it leads."""

from __future__ import annotations

import socket
from ipaddress import ip_address

from jobs.lifecycle.submit import NewJob, submit_job
from jobs.prove.stage.breaking import replace
from jobs.prove.stage.proof import Proof, Size, all_of, none_of
from jobs.prove.stage.stage import Stage
from jobs.prove.stage.target import target
from queues.models import Queue
from scheduler_project.lib.egress import Policy
from scheduler_project.lib.errors import ValidationFailed
from scheduler_project.lib.figures import Figure

#: Stands for an address out in the world: opened to the proof's worker, which shows that calls do arrive.
OPEN = "127.0.0.9"
#: This machine, in the ways in which it can be written.
LOOPBACK = (
    "127.0.0.1", "127.0.0.2", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.1", "0x7F.0.0.1", "017700000001",
    "0177.0.0.1", "0177.1", "127.0.0.01", "0.0.0.0", "0", "localhost", "LOCALHOST", "localhost.", "LocalHost.",  # noqa: S104 - nothing is bound
    "[::1]", "[0:0:0:0:0:0:0:1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]",
    "[::127.0.0.1]", "[64:ff9b::127.0.0.1]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]", "[2001:0:7f00:1::]",
    "example.com@127.0.0.1", "user:secret@127.0.0.1", "127.0.0.1#@example.com", "127.0.0.1?@example.com",
    "①②⑦.⓪.⓪.①", "127。0。0。1", "\uff11\uff12\uff17.0.0.1", "127.0.0.1%00.example.com",
)  # fmt: skip
#: Networks of a company, of a cloud, and addresses that are nobody's.
CLOSED = (
    "10.0.0.1", "10.255.255.254", "172.16.0.1", "172.31.255.254", "192.168.0.1", "192.168.1.254", "100.64.0.1",
    "169.254.169.254", "169.254.170.2", "168.63.129.16", "192.0.0.192", "192.0.2.1", "198.18.0.1", "198.51.100.1",
    "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "[fe80::1]", "[fc00::1]", "[fd00:ec2::254]",
    "[ff02::1]", "[::ffff:10.0.0.1]", "[::ffff:169.254.169.254]", "[2002:a9fe:a9fe::]", "[2002:0a00:0001::]",
    "[64:ff9b::a9fe:a9fe]", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376",
)  # fmt: skip
ERRORS = "select payload->>'url', coalesce(error_message, '') from jobs where status <> 'completed'"
#: A refusal that comes before any connection is tried.
REFUSED = ("egress_denied", "dns_failed", "bad_payload")


def run(stage: Stage) -> list[Figure]:
    """Calls to each of them, submitted past the check at the door, so that the worker has to refuse."""
    queue = stage.queue()
    with target() as server:
        hosts = [*LOOPBACK, *CLOSED, socket.gethostname()]
        server.elsewhere = f"http://127.0.0.1:{server.port}/"
        at_the_door = sum(_is_refused_at_submission(queue, f"http://{host}:{server.port}/") for host in hosts)
        stage.do("delete from jobs")
        for host in hosts:
            _submit(queue, f"http://{host}:{server.port}/")
        _submit(queue, f"http://{OPEN}:{server.port}/elsewhere")
        for _ in range(stage["open_calls"]):
            _submit(queue, f"http://{OPEN}:{server.port}/")
        stage.worker()
        stage.say(f"{len(hosts)} closed addresses; the server listens on all addresses of this machine")
        stage.until_all_ended()
        inner = [one for one in server.reached if one != OPEN]
        errors = stage.rows(ERRORS)
    tried = [
        (url, text) for url, text in errors if "elsewhere" not in url and not any(word in text for word in REFUSED)
    ]
    for url, text in tried:
        stage.say(f"{url}: {text}")
    return [
        all_of("closed_addresses", len(hosts), 60),
        none_of("reached", len(inner), "calls"),
        none_of("tried_to_connect", len(tried), "jobs"),
        all_of("refused", len(errors), len(hosts) + 1, "jobs, one of them redirected"),
        # The server is there and the worker can call: of the open address every call arrives.
        all_of("open_calls_arrived", server.reached.count(OPEN), stage["open_calls"] + 1, "calls"),
        Figure("refused_at_submission", at_the_door, "addresses"),
    ]


def _submit(queue: Queue, url: str) -> None:
    payload = {"url": url, "method": "GET", "timeout_s": 3}
    submit_job(queue, NewJob(job_type="http.webhook", payload=payload, max_attempts=1, is_stored=True))


def _is_refused_at_submission(queue: Queue, url: str) -> bool:
    try:
        submit_job(queue, NewJob(job_type="http.webhook", payload={"url": url}))
    except ValidationFailed:
        return True
    return False


def _without_policy() -> None:
    permits = Policy.permits

    def with_loopback(policy: Policy, host: str, text: str) -> bool:
        # This machine only: a broken guard must not call into the networks around it.
        return ip_address(text.partition("%")[0]).is_loopback or permits(policy, host, text)

    replace(Policy, "permits", with_loopback)


PROOF = Proof(
    name="egress",
    run=run,
    sizes={"open_calls": Size(5, 100)},
    breaks={"policy": _without_policy},
    env={"APP_EGRESS_ALLOW": OPEN, "APP_EGRESS_DENY": ""},
)
