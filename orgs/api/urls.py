"""Paths under /api/."""

from django.urls import path

from orgs.api import audit, keys, members, tickets, views, webhook_secrets

app_name = "orgs_api"
urlpatterns = [
    path("organizations", views.OrganizationsView.as_view(), name="organizations"),
    path("organizations/<uuid:org_id>", views.OrganizationView.as_view(), name="organization"),
    path("organizations/<uuid:org_id>/members", members.MembersView.as_view(), name="members"),
    path("organizations/<uuid:org_id>/members/<uuid:member_id>", members.MemberView.as_view(), name="member"),
    path("audit", audit.AuditView.as_view(), name="audit"),
    path("projects", views.ProjectsView.as_view(), name="projects"),
    path("projects/<uuid:project_id>", views.ProjectView.as_view(), name="project"),
    path("projects/<uuid:project_id>/api-keys", keys.KeysView.as_view(), name="api_keys"),
    path("projects/<uuid:project_id>/api-keys/<uuid:key_id>", keys.KeyView.as_view(), name="api_key"),
    path("projects/<uuid:project_id>/api-keys/<uuid:key_id>/rotate", keys.RotateView.as_view(), name="rotate"),
    path(
        "projects/<uuid:project_id>/webhook-secrets",
        webhook_secrets.WebhookSecretsView.as_view(),
        name="webhook_secrets",
    ),
    path(
        "projects/<uuid:project_id>/webhook-secrets/<uuid:secret_id>",
        webhook_secrets.WebhookSecretView.as_view(),
        name="webhook_secret",
    ),
    path(
        "projects/<uuid:project_id>/webhook-secrets/<uuid:secret_id>/rotate",
        webhook_secrets.RotateSecretView.as_view(),
        name="rotate_webhook_secret",
    ),
    path("ws-tickets", tickets.TicketsView.as_view(), name="tickets"),
]
