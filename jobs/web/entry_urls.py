"""Short paths without a project, as the specification names them."""

from django.urls import path

from jobs.web import entry

PAGES = {
    "": "dashboard", "queues": "queues", "jobs": "jobs", "workers": "workers", "dead-letter": "dead_letter",
    "retry-policies": "retry_policies", "scheduled-jobs": "scheduled_jobs",
}  # fmt: skip
urlpatterns = [
    *(path(route, entry.to_project, {"page": page}, name=f"to_{page}") for route, page in PAGES.items()),
    path("welcome", entry.welcome, name="welcome"),
]
