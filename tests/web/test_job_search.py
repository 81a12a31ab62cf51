"""The search box over jobs: what can be typed, what it leads to, and what it says of the rest."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest

from jobs.decisions import Failed
from jobs.selectors.job_search import Search, parse, spell
from scheduler_project.lib.errors import ValidationFailed
from tests.factories import claim_one, end, make_job, make_queue


@pytest.fixture
def page(home):
    return f"{home}jobs"


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("", Search()),
        ("  type:mail.send   queue:mail ", Search(type="mail.send", queue="mail")),
        ("status:FAILED window:7d", Search(status="failed", window="7d")),
        ("state:dead_letter", Search(status="dead_letter")),
        ('error:"time out" queue:"two words"', Search(error="time out", queue="two words")),
        ("id:01A22C59-3dcc", Search(id="01a22c593dcc", window="all")),
        ("id:01a2 window:1h", Search(id="01a2", window="1h")),
        ("01a22c59", Search(id="01a22c59", window="all")),
        ("mail.send", Search(type="mail.send")),
        ("deadbeef", Search(type="deadbeef")),
        ("type:http:webhook", Search(type="http:webhook")),
    ],
)
def test_what_is_typed_is_meant_and_can_be_spelt_again(text, means):
    assert parse(text) == means
    assert parse(spell(means)) == means


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("colour:red", '"colour:" is no word to search by. Allowed: queue:, type:, status:, id:, error:, window:'),
        ("tag:x", "Allowed: queue:"),
        ("-type:x", "Allowed: queue:"),
        ("status:gone", "status: is one of scheduled, queued,"),
        ("window:9d", "window: is one of 1h, 24h, 7d, all"),
        ("queue:", "queue: needs a value"),
        ("id:xyz", "id: takes 4 to 32 of 0-9 and a-f"),
        ("id:" + "0" * 33, "id: takes 4 to 32"),
        ("type:a type:b", "type: stands there twice"),
        ("mail sms", "type: stands there twice"),
        ('error:"never closed', "a quote stands around a whole value"),
        ('error:"a"b', "a quote stands around a whole value"),
        ("type:" + "x" * 201, "no more than 200 characters"),
        ("x" * 1_001, "no more than 1,000 characters"),
    ],
)
def test_what_can_not_be_meant_says_what_is_allowed(text, says):
    with pytest.raises(ValidationFailed) as refused:
        parse(text)
    assert refused.value.details[0].field == "q"
    assert says in refused.value.details[0].message


def test_it_leads_to_the_address_that_says_the_same(signed_in, page, queue, project):
    mail = make_queue(project, name="mail")
    wanted, _ = make_job(mail, "mail.send"), make_job(mail, "sms")
    make_job(queue, "mail.send")
    client = signed_in("viewer")

    answer = client.get(f"{page}?q=" + quote("queue:mail type:mail.send status:queued"))
    assert answer.status_code == 302
    assert answer.url == f"{page}?status=queued&queue={mail.pk}&type=mail.send&window=24h"
    html = client.get(answer.url).content.decode()
    assert found(html) == [str(wanted.pk)]
    assert 'value="queue:mail type:mail.send status:queued"' in html


def test_ids_are_found_by_how_they_begin_however_old(signed_in, page, queue):
    one, other = make_job(queue), make_job(queue)
    client = signed_in("viewer")

    def ids(text: str) -> list[str]:
        return found(client.get(f"{page}?q={quote(text)}", follow=True).content.decode())

    assert ids(f"id:{one.pk}") == [str(one.pk)]
    assert ids(str(other.pk)) == [str(other.pk)]
    assert ids(f"id:{str(one.pk)[:8]}") == [str(other.pk), str(one.pk)]
    assert ids("id:00000000") == []
    assert ids("id:" + "f" * 32) == []


def test_errors_are_found_among_the_newest_failures(signed_in, page, queue, project):
    other = make_queue(project)
    for of, text in ((queue, "Time Out after 3 s"), (other, "time out"), (queue, "no room 100%")):
        make_job(of, "mail", max_attempts=1)
        end(claim_one(of), Failed(text))
    make_job(queue)
    client = signed_in("viewer")

    def count(text: str) -> int:
        html = client.get(f"{page}?q={quote(text)}", follow=True).content.decode()
        assert "are cancelled" not in html
        return len(found(html))

    assert count('error:"time out"') == 2
    assert count(f'error:"time out" queue:{queue.name}') == 1
    assert count("error:100% type:mail status:dead_letter") == 1
    assert count("error:time status:queued") == 0


@pytest.mark.parametrize(
    "text", ["colour:red", "queue:nowhere", "\x00", "a\x00:b", "'", '"', "status:<svg/onload=1>", "id:\u0661"]
)
def test_whatever_is_typed_there_is_a_page_that_says_what_is_wrong(signed_in, page, queue, text):
    make_job(queue)
    answer = signed_in("viewer").get(f"{page}?q={quote(text)}", follow=True)
    html = answer.content.decode()

    assert answer.status_code == 200
    assert "<svg/onload" not in html
    if 'id="q-problem"' in html:
        assert found(html) == []
        assert "data-live=" not in html.split('id="job-list"')[1].split(">")[0]


def test_an_unknown_queue_names_those_there_are(signed_in, page, project):
    make_queue(project, name="mail")
    html = signed_in("viewer").get(f"{page}?q=queue:male").content.decode()

    assert "there is no &quot;male&quot; here. There are: mail" in html


def test_a_type_in_several_queues_asks_for_one_and_in_one_it_does_not(signed_in, page, queue, project):
    make_job(queue, "mail")
    client = signed_in("viewer")
    assert len(found(client.get(f"{page}?type=mail").content.decode())) == 1
    make_queue(project)
    assert "Choose a queue too" in client.get(f"{page}?type=mail").content.decode()


def test_what_operations_can_not_be_told_is_not_widened(signed_in, page, queue):
    one = make_job(queue)
    client = signed_in("member")
    html = client.get(f"{page}?id={one.pk}&window=all").content.decode()
    assert 'name="all"' not in html

    answer = client.post(f"{page}/act", {"all": "1", "action": "cancel", "id": str(one.pk)}, follow=True)
    assert "select the jobs instead" in answer.content.decode()


def test_the_export_is_about_the_same_jobs(signed_in, page, queue):
    one, _ = make_job(queue), make_job(queue)
    text = signed_in("viewer").get(f"{page}/export?id={one.pk}&window=all").content.decode()

    assert text.count("\n") == 2
    assert str(one.pk) in text


def found(html: str) -> list[str]:
    return re.findall(r'<tr id="j-([^"]*)"', html)
