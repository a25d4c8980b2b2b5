"""The demo: its sample project, guide, policy and reports."""
