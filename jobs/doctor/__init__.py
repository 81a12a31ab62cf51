"""What manage.py doctor looks at: one small file for each part of an installation that can be out of order."""
