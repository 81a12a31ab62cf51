"""Paths under /api/."""

from django.urls import path

from jobs.api import batches, bulk, executions, jobs, ledger, operations, preview, remote, schedules, system, workers

app_name = "jobs_api"
urlpatterns = [
    path("jobs", jobs.JobsView.as_view(), name="jobs"),
    path("jobs/bulk", bulk.BulkView.as_view(), name="bulk"),
    path("jobs/<uuid:job_id>", jobs.JobView.as_view(), name="job"),
    path("jobs/<uuid:job_id>/cancel", jobs.CancelView.as_view(), name="cancel"),
    path("jobs/<uuid:job_id>/retry", jobs.RetryView.as_view(), name="retry"),
    path("jobs/<uuid:job_id>/explain", jobs.ExplainView.as_view(), name="explain"),
    path("jobs/<uuid:job_id>/executions", executions.ExecutionsView.as_view(), name="executions"),
    path("jobs/<uuid:job_id>/logs", executions.LogsView.as_view(), name="logs"),
    path("operations", operations.OperationsView.as_view(), name="operations"),
    path("operations/<uuid:operation_id>", operations.OperationView.as_view(), name="operation"),
    path("operations/<uuid:operation_id>/abort", operations.AbortView.as_view(), name="abort"),
    path("scheduled-jobs", schedules.SchedulesView.as_view(), name="schedules"),
    path("scheduled-jobs/preview", preview.PreviewView.as_view(), name="preview"),
    path("scheduled-jobs/<uuid:schedule_id>", schedules.ScheduleView.as_view(), name="schedule"),
    path("scheduled-jobs/<uuid:schedule_id>/activate", schedules.ActivateView.as_view(), name="activate"),
    path("scheduled-jobs/<uuid:schedule_id>/deactivate", schedules.DeactivateView.as_view(), name="deactivate"),
    path("scheduled-jobs/<uuid:schedule_id>/pause", schedules.PauseView.as_view(), name="pause_schedule"),
    path("scheduled-jobs/<uuid:schedule_id>/resume", schedules.ResumeView.as_view(), name="resume_schedule"),
    path("scheduled-jobs/<uuid:schedule_id>/trigger", schedules.TriggerView.as_view(), name="trigger"),
    path("scheduled-jobs/<uuid:schedule_id>/fires", ledger.FiresView.as_view(), name="fires"),
    path("scheduled-jobs/<uuid:schedule_id>/backfill", ledger.BackfillView.as_view(), name="backfill"),
    path("batches", batches.BatchesView.as_view(), name="batches"),
    path("batches/<uuid:batch_id>", batches.BatchView.as_view(), name="batch"),
    path("batches/<uuid:batch_id>/jobs", batches.BatchJobsView.as_view(), name="batch_jobs"),
    path("batches/<uuid:batch_id>/close", batches.CloseView.as_view(), name="close_batch"),
    path("batches/<uuid:batch_id>/cancel", batches.CancelBatchView.as_view(), name="cancel_batch"),
    path("metrics/system", system.SystemView.as_view(), name="system"),
    path("worker/claim", remote.ClaimView.as_view(), name="worker_claim"),
    path("worker/heartbeat", remote.HeartbeatView.as_view(), name="worker_heartbeat"),
    path("worker/finish", remote.FinishView.as_view(), name="worker_finish"),
    path("workers/<uuid:worker_id>/drain", remote.DrainView.as_view(), name="worker_drain"),
    path("workers", workers.WorkersView.as_view(), name="workers"),
]
