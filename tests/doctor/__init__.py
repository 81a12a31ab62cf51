"""Faults that manage.py doctor must name."""
