"""Mails of alerts: sent by Django's settings, submitted by nobody but the engine."""

from __future__ import annotations

import smtplib

import pytest
from django.core import mail

from jobs.handlers.base import Permanent
from jobs.handlers.email import EMAIL, email
from jobs.lifecycle.submit import NewJob, submit_job
from jobs.models import Job
from jobs.services.batches import create_batch
from jobs.services.notices import email_job, send
from scheduler_project.lib.errors import ValidationFailed
from tests.worker_parts import context_of, lease_of

PAYLOAD = {"to": ["a@example.com"], "subject": "x", "text": "y"}


def test_a_mail_is_sent_from_the_sender_of_the_settings(settings):
    settings.DEFAULT_FROM_EMAIL = "punctual@example.com"

    assert email(context_of(lease_of(EMAIL, PAYLOAD))) == {"sent_to": 1}

    [sent] = mail.outbox
    assert (sent.to, sent.subject, sent.body) == (["a@example.com"], "x", "y")
    assert sent.from_email == "punctual@example.com"
    assert "@punctual>" in sent.message()["Message-ID"]


def test_a_line_break_in_a_name_makes_no_header():
    email(context_of(lease_of(EMAIL, {**PAYLOAD, "subject": "x\r\nBcc: everybody@example.com"})))

    [sent] = mail.outbox
    assert sent.message()["Bcc"] is None
    assert sent.recipients() == ["a@example.com"]


@pytest.mark.parametrize(("code", "is_final"), [(550, True), (450, False)])
def test_a_mailbox_that_is_not_there_is_not_tried_again(monkeypatch, code, is_final):
    def refuse(_self):
        raise smtplib.SMTPRecipientsRefused({"a@example.com": (code, b"no")})

    monkeypatch.setattr("jobs.handlers.email.EmailMessage.send", refuse)
    with pytest.raises(Permanent if is_final else smtplib.SMTPRecipientsRefused):
        email(context_of(lease_of(EMAIL, PAYLOAD)))


@pytest.mark.django_db
def test_nobody_else_submits_a_mail(queue, as_machine_api):
    with pytest.raises(ValidationFailed, match="by the engine alone"):
        submit_job(queue, NewJob(job_type=EMAIL, payload=PAYLOAD))
    with pytest.raises(ValidationFailed):
        create_batch(queue.project_id, "b", callbacks={"on_end": {"queue_id": str(queue.pk), "job_type": EMAIL}})
    answer = as_machine_api.post("jobs", {"queue_id": str(queue.pk), "job_type": EMAIL, "payload": PAYLOAD})
    assert answer.status_code == 400

    assert send(queue.project_id, [email_job(["a@example.com"], "x", "y", key="k")])
    assert Job.objects.get().job_type == EMAIL


@pytest.fixture
def as_machine_api(project):
    from tests.personas import Api, make_key

    return Api(key=make_key(project))
