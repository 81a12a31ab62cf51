"""The roof: every door's paths."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView

from scheduler_project import api_docs

api = [
    path("auth/", include("accounts.api.urls")),
    path("", include("orgs.api.urls")),
    path("", include("queues.api.urls")),
    path("", include("jobs.api.urls")),
    path("", include("dlq.api.urls")),
]
urlpatterns: list[URLPattern | URLResolver] = [
    path("", RedirectView.as_view(url="/admin/")),
    path("api/schema", api_docs.schema, name="api_schema"),
    path("api/docs", api_docs.DocsView.as_view(), name="api_docs"),
    path("api/", include(api)),
    path("admin/", admin.site.urls),
]
handler400 = "scheduler_project.views.bad_request"
handler403 = "scheduler_project.views.permission_denied"
handler404 = "scheduler_project.views.page_not_found"
handler500 = "scheduler_project.views.server_error"
