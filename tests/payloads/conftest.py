"""The personas, where they are needed."""

from tests.personas import *  # noqa: F403
from tests.personas import _without_collected_files  # noqa: F401
