"""Pages of workflows: the graph of jobs that wait for each other, and cancel and retry from a node."""

from __future__ import annotations

import re

import pytest

from jobs.decisions import Failed, Succeeded
from jobs.lifecycle.graph import After, Node, submit_graph
from jobs.lifecycle.submit import NewJob
from jobs.models import Job
from jobs.web.graph_layers import FOLD_ABOVE, Member, layered
from jobs.web.graph_svg import MOST_NODES, can_be_drawn
from orgs.models import AuditEntry
from tests.factories import claim_from, end, make_job, make_queue, status_of
from tests.web.forms import found_in, token_of
from tests.web.test_pages import HOSTILE

BUDGET = 12


def read(client, path):
    return client.get(path).content.decode()


def submitted(queue, **after):
    """A graph: names, each with the names it waits for; the job's type is the name without its number."""
    nodes = [
        Node(name, queue, NewJob(job_type=name.rstrip("0123456789"), max_attempts=1), [After(ref) for ref in refs])
        for name, refs in after.items()
    ]
    return {name: job.id for name, job in submit_graph(nodes).items()}


@pytest.fixture
def page(home):
    return f"{home}workflows"


def shape(members, edges):
    columns = layered([Member(name, name.rstrip("0123456789"), "queued") for name in members], edges)
    return [sorted((node.kind, len(node.members)) for node in column) for column in columns]


# -- the layers ----------------------------------------------------------------------------------------------------


def test_a_node_stands_right_of_all_it_waits_for():
    edges = [("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")]
    assert shape("abcd", edges) == [[("a", 1)], [("b", 1)], [("c", 1)], [("d", 1)]]
    assert shape([], []) == []
    assert shape("a", [("a", "gone"), ("gone", "a")]) == [[("a", 1)]]


@pytest.mark.parametrize(
    ("n", "drawn"), [(FOLD_ABOVE, [("x", 1)] * FOLD_ABOVE), (FOLD_ABOVE + 1, [("x", FOLD_ABOVE + 1)])]
)
def test_only_big_fan_outs_are_folded(n, drawn):
    names = [f"x{i}" for i in range(n)]
    edges = [("a", name) for name in names] + [(name, "z") for name in names]
    assert shape(["a", *names, "z"], edges) == [[("a", 1)], drawn, [("z", 1)]]


def test_chains_behind_a_fan_out_are_folded_with_it():
    edges = [("a", f"x{i}") for i in range(50)] + [(f"x{i}", f"y{i}") for i in range(50)]
    names = ["a", *[f"x{i}" for i in range(50)], *[f"y{i}" for i in range(50)]]
    assert shape(names, edges) == [[("a", 1)], [("x", 50)], [("y", 50)]]


def test_siblings_of_another_kind_or_with_other_parents_are_not_folded_together():
    names = [*[f"x{i}" for i in range(8)], *[f"y{i}" for i in range(8)]]
    edges = [("a", name) for name in names] + [("b", f"x{i}") for i in range(4)]
    assert shape(["a", "b", *names], edges)[1] == [("x", 1)] * 8 + [("y", 8)]


def test_rows_follow_their_neighbours():
    edges = [("a", "d"), ("b", "c")]
    columns = layered([Member(name, name, "queued") for name in "abcd"], edges)
    first, second = [[node.key for node in sorted(column, key=lambda node: node.row)] for column in columns]
    assert [dict(edges)[name] for name in first] == second


def test_what_nobody_could_read_is_not_drawn():
    many = [Member(str(i), str(i), "queued") for i in range(MOST_NODES + 1)]
    assert not can_be_drawn(layered(many, []))
    assert can_be_drawn(layered(many[:-1], []))


# -- the pages -----------------------------------------------------------------------------------------------------


def test_the_pages_stay_in_their_budget(signed_in, page, queue, django_assert_max_num_queries):
    ids = submitted(queue, fetch=[], **{f"resize{i}": ["fetch"] for i in range(300)}, publish=["resize1"])
    client = signed_in("member")
    for path in (page, f"{page}/{ids['fetch']}"):
        with django_assert_max_num_queries(BUDGET):
            html = read(client, path)
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", html)


def test_the_graph_shows_states_and_leads_to_each_job(signed_in, page, queue):
    ids = submitted(queue, fetch=[], left=["fetch"], right=["fetch"], join=["left", "right"])
    [lease] = claim_from(queue)
    end(lease, Succeeded("null"))
    html = read(signed_in("viewer"), f"{page}/{ids['left']}")

    assert "Graph of 4 jobs in 3 steps" in html
    assert re.search(rf'<a href="[^"]*{ids["fetch"]}" class="node s-completed" aria-label="fetch: Completed"', html)
    assert re.search(rf'<a href="[^"]*{ids["left"]}" class="node s-queued is-focus"', html)
    assert re.search(rf'<a href="[^"]*{ids["join"]}" class="node s-scheduled"', html)
    assert html.split('class="edges"')[1].split("</g>")[0].count("<path") == 4
    assert "3 not ended" in html
    assert "data-live=" in html
    assert "/cancel" not in html


def test_a_folded_node_lists_its_jobs_with_the_bad_ones_first(signed_in, page, queue):
    ids = submitted(queue, fetch=[], **{f"resize{i}": ["fetch"] for i in range(9)})
    [lease] = claim_from(queue)
    end(lease, Succeeded("null"))
    leases = claim_from(queue, 2)
    end(leases[0], Failed("out of paper"))
    client, path = signed_in("viewer"), f"{page}/{ids['fetch']}"
    html = read(client, path)
    said = found_in(r'aria-label="resize: 9 jobs: ([^"]*)"', html)
    assert set(said.split(", ")) == {"7 queued", "1 dead letter", "1 running"}
    group = found_in(r'\?group=([\w-]+)#jobs" class="node s-dead_letter is-folded"', html)
    html = read(client, f"{path}?group={group}").split('id="jobs"')[1]
    assert "resize" in html
    assert ">fetch<" not in html
    assert html.index("out of paper") < html.index(">Running<") < html.index(">Queued<")
    assert read(client, f"{path}?group=nonsense").count("<li") >= 10


def test_cancel_from_here_takes_what_waits_along(signed_in, page, queue, member):
    ids = submitted(queue, fetch=[], left=["fetch"], right=["fetch"], join=["left"])
    client, path = signed_in("member"), f"{page}/{ids['left']}"
    asked = client.post(f"{path}/cancel")
    assert "left and 1 jobs behind it" in asked.content.decode()
    assert status_of(ids["left"]) == "scheduled"
    client.post(f"{path}/cancel", {"confirm_token": token_of(asked)})
    assert {name: status_of(id_) for name, id_ in ids.items()} == {
        "fetch": "queued", "left": "cancelled", "join": "cancelled", "right": "scheduled",
    }  # fmt: skip
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.user, (entry.after or {})["with_downstream"]) == ("job.cancel", member, True)
    again = client.post(f"{path}/cancel", {"confirm_token": token_of(client.post(f"{path}/cancel"))}, follow=True)
    assert "have ended already" in again.content.decode()


def test_run_again_from_here_keeps_the_order(signed_in, page, queue, member):
    ids = submitted(queue, fetch=[], left=["fetch"], join=["left"])
    for _ in range(3):
        [lease] = claim_from(queue)
        end(lease, Succeeded("null"))
    client, path = signed_in("member"), f"{page}/{ids['left']}"
    assert "all ended" in read(client, path)
    asked = client.post(f"{path}/retry")
    done = client.post(f"{path}/retry", {"confirm_token": token_of(asked)}, follow=True).content.decode()
    assert "2 jobs run again" in done
    assert {name: status_of(id_) for name, id_ in ids.items()} == {
        "fetch": "completed", "left": "queued", "join": "scheduled",
    }  # fmt: skip
    refused = client.post(f"{path}/retry", {"confirm_token": token_of(client.post(f"{path}/retry"))}, follow=True)
    assert "only a job that has ended" in refused.content.decode()


def test_the_list_has_each_workflow_once(signed_in, page, queue):
    client = signed_in("viewer")
    assert "There are no workflows yet" in read(client, page)
    first = submitted(queue, fetch=[], left=["fetch"], right=["fetch"], join=["left", "right"])
    make_job(queue, "alone")
    second = submitted(queue, load=[], store=["load"])
    foreign = submitted(make_queue(), theirs=[], more=["theirs"])
    html = read(client, page)
    assert re.findall(r'id="w-([\w-]+)"', html) == [str(second["load"]), str(first["fetch"])]
    assert "fetch</bdi> → <bdi>join" in html
    assert client.get(f"{page}/{foreign['theirs']}").status_code == 404
    assert signed_in("member").post(f"{page}/{foreign['theirs']}/cancel").status_code == 404
    Job.objects.filter(pk__in=first.values()).update(status="completed", completed_at="2026-01-01T00:00Z")
    assert re.findall(r"<td><span class=\"state s-(\w+)", read(client, page)) == ["running", "completed"]


def test_a_job_without_others_is_a_graph_of_one(signed_in, page, queue):
    job = make_job(queue, "alone")
    assert "1 job in 1 step" in read(signed_in("viewer"), f"{page}/{job.pk}")


def test_hostile_types_are_text(signed_in, page, queue):
    ids = submitted(queue, fetch=[], left=["fetch"])
    Job.objects.filter(pk__in=ids.values()).update(job_type=HOSTILE[:200])
    for path in (page, f"{page}/{ids['left']}"):
        html = read(signed_in("owner"), path)
        assert "<svg onload" not in html
        assert "\u202e" not in html
