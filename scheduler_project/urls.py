"""The roof: every door's paths."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

from scheduler_project import api_docs

api = [
    path("auth/", include("accounts.api.urls")),
    path("", include("jobs.api.urls")),
    path("", include("queues.api.urls")),
    path("", include("orgs.api.urls")),
    path("", include("dlq.api.urls")),
]
#: Every page below an organization and a project; a new door's paths are added here.
project_pages = [
    path("", include("jobs.web.urls")),
    path("", include("queues.web.urls")),
    path("", include("queues.web.policy_urls")),
    path("", include("dlq.web.urls")),
    path("", include("jobs.web.schedule_urls")),
    path("", include("jobs.web.worker_urls")),
    path("", include("jobs.web.operation_urls")),
    path("", include("jobs.web.breaker_urls")),
    path("", include("jobs.web.batch_urls")),
    path("", include("jobs.web.workflow_urls")),
    path("", include("orgs.web.project_urls")),
    path("", include("jobs.web.proof_urls")),
    path("", include("jobs.web.alert_urls")),
]
urlpatterns: list[URLPattern | URLResolver] = [
    # What is asked most often comes first: patterns are tried one by one.
    path("api/", include(api)),
    path("", include("accounts.web.urls")),
    path("", include("jobs.web.entry_urls")),
    path("o/<slug:org_slug>/", include("orgs.web.urls")),
    path("p/<slug:org_slug>/<slug:project_slug>/", include(project_pages)),
    path("api/schema", api_docs.schema, name="api_schema"),
    path("api/docs", api_docs.DocsView.as_view(), name="api_docs"),
    path("admin/", admin.site.urls),
]
handler400 = "scheduler_project.views.bad_request"
handler403 = "scheduler_project.views.permission_denied"
handler404 = "scheduler_project.views.page_not_found"
handler500 = "scheduler_project.views.server_error"
