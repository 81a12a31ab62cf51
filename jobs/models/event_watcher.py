"""Web processes that have somebody who looks at live events: while there is none, nobody publishes any."""

from __future__ import annotations

from django.db import models


class EventWatcher(models.Model):
    """One start of a web process; it renews its row while it has listeners."""

    id = models.UUIDField(primary_key=True, editable=False)
    expires_at = models.DateTimeField()

    class Meta:
        db_table = "event_watchers"

    def __str__(self) -> str:
        return str(self.id)
