"""What deploy/ holds: the alerts, the dashboards, the containers."""
