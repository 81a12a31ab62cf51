"""The parts of the embedded PostgreSQL; its door is ``scheduler_project.lib.embedded_pg``."""
