"""system.email: one mail through Django's e-mail settings, as a job: retried, and there for everybody to see.

Only the engine submits it. Else whoever may submit jobs could send anything to anybody in the installation's name.
"""

from __future__ import annotations

import smtplib
from typing import Any

from django.core.mail import EmailMessage

from jobs.handlers.base import JobContext, Permanent
from jobs.handlers.registry import handler

EMAIL = "system.email"
#: Answers of mail servers that the same mail gets again: no such mailbox, not a sender they take.
_FINAL = range(500, 600)


class NotYours(ValueError):
    """Somebody else than the engine submits a mail."""


def refuse(_: Any) -> None:
    """No submission passes; the engine's own are not checked, since what they hold comes from its tables.

    Raises:
        NotYours: always.
    """
    raise NotYours("job_type: system.email is submitted by the engine alone")


@handler(EMAIL, is_internal=True, check=refuse, timeout_s=120.0)
def email(ctx: JobContext) -> dict[str, Any]:
    """Send a mail to the addresses in ``to``; return how many there were."""
    payload = ctx.payload
    try:
        to, subject, text = list(payload["to"]), str(payload["subject"]), str(payload["text"])
    except (KeyError, TypeError):
        raise Permanent("bad_payload: to, subject and text are needed") from None
    # The id stays over all attempts, so that mailboxes can see a repetition.
    headers = {"Message-ID": f"<{ctx.job_id}@punctual>", "Auto-Submitted": "auto-generated"}
    # One line: a name with a line break must not become a header.
    message = EmailMessage(" ".join(subject.split())[:200], text, to=to, headers=headers)
    try:
        message.send()
    except smtplib.SMTPRecipientsRefused as error:
        codes = {code for code, _ in error.recipients.values()}
        if all(code in _FINAL for code in codes):
            raise Permanent(f"recipients_refused: the mail server answered {sorted(codes)}") from None
        raise
    return {"sent_to": len(to)}
