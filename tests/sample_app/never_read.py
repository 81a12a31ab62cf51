"""A module that must never be imported because a payload names it."""

raise RuntimeError("this module was imported")
