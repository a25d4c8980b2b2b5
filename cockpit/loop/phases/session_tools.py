"""The tools of a session: its role's, and no actions for a task type that only reads.

A session of such a type may propose to become another one, which the user decides. See
``docs/reference/actions.md``, tools.
"""

from __future__ import annotations

from functools import cache

from cockpit.act.model_tools import ACTIONS, GROW, PLANNING, RESUME, TOOLS, WITH_TASK, ToolDef
from cockpit.loop.decisions import task_type_tool
from cockpit.loop.planner.plan_target import PLAN_TYPE
from cockpit.loop.skills.created_skill import SKILL_TOOL, offers_skills
from cockpit.loop.tools.offer_tools import added_tools_of
from cockpit.loop.wave_context import WaveContext


def tools_of_session(context: WaveContext) -> tuple[ToolDef, ...]:
    """Return the tools that the session's agent may call, in their fixed order."""
    task_type = context.engine.task_types.get(context.session.task_type)
    reads_only = task_type is not None and task_type.reads_only
    role = context.engine.role(context.session.role)
    role_tools = None if role is None else tuple(role.tools)
    has_skills, has_task = (
        offers_skills(context.engine.settings),
        context.session.task_id is not None,
    )
    plans = context.session.task_type == PLAN_TYPE
    has_added = bool(added_tools_of(context).definitions)
    grows = grows_tools(context)
    return _select_tools(reads_only, role_tools, has_skills, has_task, plans, grows, has_added)


def grows_tools(context: WaveContext) -> bool:
    """Whether a tool could grow here and be called afterwards."""
    engine = context.engine
    can_grow = engine.settings.grow_tool is not None and engine.added is not None
    return can_grow and engine.ground.sandbox.works


@cache
def _select_tools(
    reads_only: bool,
    role_tools: tuple[str, ...] | None,
    has_skills: bool,
    has_task: bool,
    plans: bool,
    grows: bool,
    has_added: bool,
) -> tuple[ToolDef, ...]:
    if role_tools is not None:
        allowed = (frozenset(role_tools) | {RESUME}) - {task_type_tool.TOOL}
    else:
        allowed = frozenset(tool.name for tool in TOOLS)
        if not reads_only:
            allowed -= {task_type_tool.TOOL}
    if reads_only:
        allowed -= set(ACTIONS)
    if not has_skills:
        allowed -= {SKILL_TOOL}
    if not plans or role_tools is not None:
        allowed -= set(PLANNING)
    else:
        allowed -= {task_type_tool.TOOL, GROW}
    if not grows:
        allowed -= {GROW}
    if not has_task:
        allowed -= set(WITH_TASK)
    if not has_added and not allowed & {*ACTIONS, GROW}:
        allowed -= {RESUME}
    return tuple(tool for tool in TOOLS if tool.name in allowed)
