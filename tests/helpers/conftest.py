"""The helpers as fixtures, as a user's conftest.py has them (there by ``pytest_plugins``)."""

from jobs.testing.plugin import assert_submitted, drain, punctual_queue, run_inline, time_passes  # noqa: F401
