"""What every REST door shares: the error shape, strict input, pages. Knows no app.

Only what the settings name is imported here: ``views`` must not be, since REST framework reads those settings while
it is imported itself.
"""

from scheduler_project.lib.rest.errors import exception_handler
from scheduler_project.lib.rest.parsing import StrictJSONParser

__all__ = ["StrictJSONParser", "exception_handler"]
