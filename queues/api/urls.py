"""Paths under /api/."""

from django.urls import path

from queues.api import queues, retry_policies

app_name = "queues_api"
urlpatterns = [
    path("queues", queues.QueuesView.as_view(), name="queues"),
    path("queues/<uuid:queue_id>", queues.QueueView.as_view(), name="queue"),
    path("queues/<uuid:queue_id>/pause", queues.PauseView.as_view(), name="pause"),
    path("queues/<uuid:queue_id>/resume", queues.ResumeView.as_view(), name="resume"),
    path("retry-policies", retry_policies.RetryPoliciesView.as_view(), name="retry_policies"),
    path("retry-policies/<uuid:policy_id>", retry_policies.RetryPolicyView.as_view(), name="retry_policy"),
]
