"""Paths of alerts and event webhooks, in the settings of a project."""

from django.urls import path

from jobs.web import alerts, event_webhooks

_RULE, _ONE = "settings/alerts/<uuid:rule_id>", "settings/event-webhooks/<uuid:subscription_id>"
urlpatterns = [
    path("settings/alerts", alerts.rules, name="alert_rules"),
    path("settings/alerts/new", alerts.new, name="alert_rule_new"),
    path(_RULE, alerts.edit, name="alert_rule_edit"),
    path(f"{_RULE}/delete", alerts.delete, name="alert_rule_delete"),
    path("settings/event-webhooks", event_webhooks.subscriptions, name="event_webhooks"),
    path("settings/event-webhooks/new", event_webhooks.new, name="event_webhook_new"),
    path(_ONE, event_webhooks.edit, name="event_webhook_edit"),
    path(f"{_ONE}/test", event_webhooks.test, name="event_webhook_test"),
    path(f"{_ONE}/delete", event_webhooks.delete, name="event_webhook_delete"),
]
