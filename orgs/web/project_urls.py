"""Paths of settings, below an organization and a project."""

from django.urls import path

from orgs.web import audit, egress, keys, members, secrets, settings

urlpatterns = [
    path("audit-log", audit.audit_log, name="audit_log"),
    path("settings", settings.project, name="settings"),
    path("settings/edit", settings.edit, name="settings_edit"),
    path("settings/projects/new", settings.new, name="project_new"),
    path("settings/delete", settings.delete, name="project_delete"),
    path("settings/members", members.members, name="members"),
    path("settings/members/add", members.add, name="member_add"),
    path("settings/members/<uuid:member_id>/role", members.set_role, name="member_role"),
    path("settings/members/<uuid:member_id>/remove", members.remove, name="member_remove"),
    path("settings/api-keys", keys.keys, name="api_keys"),
    path("settings/api-keys/new", keys.new, name="api_key_new"),
    path("settings/api-keys/<uuid:key_id>/rotate", keys.rotate, name="api_key_rotate"),
    path("settings/api-keys/<uuid:key_id>/revoke", keys.revoke, name="api_key_revoke"),
    path("settings/egress", egress.egress, name="egress"),
    path("settings/webhook-secrets", secrets.secrets, name="webhook_secrets"),
    path("settings/webhook-secrets/new", secrets.new, name="webhook_secret_new"),
    path("settings/webhook-secrets/<uuid:secret_id>/rotate", secrets.rotate, name="webhook_secret_rotate"),
    path("settings/webhook-secrets/<uuid:secret_id>/revoke", secrets.revoke, name="webhook_secret_revoke"),
]
