"""The action of a proposed plan, for modules that need nothing else of plans."""

PLAN_ACTION = "backlog_plan"
"""The action type of a proposed plan."""
