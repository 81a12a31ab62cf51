"""The product's settings with one bare view: what `bench api` holds a submission against."""

from scheduler_project.settings import *  # noqa: F403 - all of them

ROOT_URLCONF = "jobs.bench.bare_urls"
