"""What an estimate is compared with: the kind of a session or a task, and the family of its model.

See ``docs/reference/planner.md``, kinds.
"""

from __future__ import annotations

from msgspec.structs import replace

from cockpit.decide.planner.defaults import ALL_ROLES, Prior, find_agent_prior, find_prior
from cockpit.store.estimates.estimates import Family
from cockpit.store.sessions.sessions import EXTERNAL_AGENT, RUNNER_PREFIX, Session

AGENT_MODELS = (RUNNER_PREFIX, f"{EXTERNAL_AGENT}:")


def kind_of_session(session: Session) -> str:
    """Return the task type, with its role in a chain; for an external agent its name instead."""
    name = session.agent or session.task_type
    if not session.agent and session.model.startswith(RUNNER_PREFIX):
        name = session.model.removeprefix(RUNNER_PREFIX)
    return f"{name}/{session.role}" if session.role else name


def family_of(model: str, agent: str = "") -> Family:
    """Return what kind of model it is; only sessions of one family are compared."""
    if agent or model.startswith(AGENT_MODELS):
        return "agent"
    if model == "offline":
        return "offline"
    return "script" if model.startswith("script:") else "model"


def prior_of(kind: str, family: str, *, unit: str = "session") -> Prior:
    """Return the shipped defaults for a kind."""
    if family == "agent" and unit == "session":
        return find_agent_prior()
    task_type, _, role = kind.partition("/")
    prior = find_prior(task_type, ALL_ROLES if unit == "task" else role)
    return replace(prior, tokens=(0.0, 0.0, 0.0)) if family == "offline" else prior
