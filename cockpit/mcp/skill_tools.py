"""Skills for external agents: which there are, which a task needs, and their text.

They are texts of the user and the project, given as they are in packets: as guidance that grants nothing. See
``docs/reference/skills.md``, external agents.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from msgspec import Struct

from cockpit.access.token_scopes import READ
from cockpit.core.read_record import describe
from cockpit.core.secrets import mask
from cockpit.core.skills.shorten_skill import list_sections, read_section
from cockpit.mcp.call_dispatcher import ClientConnection, Dispatcher, LoopTool, WrongArguments


class ListSkills(Struct, frozen=True):
    """List all skills, or those for a task."""

    task: Annotated[str | None, describe("your task: only the skills for it")] = None


class GetSkill(Struct, frozen=True):
    """Name a skill, and a section of it that is to be read."""

    name: Annotated[str, describe("as a hook names it")]
    section: Annotated[str | None, describe("its heading")] = None


async def _list_skills(
    dispatcher: Dispatcher, client: ClientConnection, arguments: ListSkills
) -> dict[str, Any]:
    caller = await dispatcher.authenticate(client)
    caller.require(READ, "list skills")

    engine = await dispatcher.engine()
    from cockpit.orient.skills.choose_skills import choose_skills

    project_skills, task = engine.skills, arguments.task
    await asyncio.to_thread(project_skills.refresh)
    if task is None:
        return {
            "skills": [
                {"name": skill.name, "layer": skill.layer, "description": skill.description}
                for skill in project_skills.skills.values()
            ]
        }
    near = await engine.librarian.compare_skills(task)
    return {
        "skills": [
            {
                "name": choice.name,
                "why": choice.why,
                "is_sure": not choice.is_named,
                "description": project_skills.skills[choice.name].description,
            }
            for choice in choose_skills(
                project_skills.skills, project_skills.index, task, vectors=near
            )
        ]
    }


async def _get_skill(
    dispatcher: Dispatcher, client: ClientConnection, arguments: GetSkill
) -> dict[str, Any]:
    caller = await dispatcher.authenticate(client)
    caller.require(READ, "read skills")

    project_skills = (await dispatcher.engine()).skills
    await asyncio.to_thread(project_skills.refresh)
    skill = project_skills.skills.get(arguments.name)
    if skill is None:
        raise WrongArguments(f"There is no skill {arguments.name!r}; `cockpit skills` shows all.")
    text = project_skills.fact(skill.name).full.text
    if arguments.section is not None:
        section = read_section(skill, arguments.section)
        if section is None:
            names = ", ".join(each.title for each in list_sections(skill)) or "no sections"
            raise WrongArguments(
                f"Skill {skill.name} has no section {arguments.section!r}; it has {names}."
            )
        text = mask(section)
    return {
        "name": skill.name,
        "layer": skill.layer,
        "text": text,
        "files": [f"skill:{skill.name}/{path}" for path in skill.files],
    }


SKILL_TOOLS = (
    LoopTool(
        "list_skills",
        "standard",
        "Skills: instructions for kinds of work. With a task, those that fit it.",
        ListSkills,
        _list_skills,
    ),
    LoopTool(
        "get_skill",
        "core",
        "A skill's text or section. Read its files with request_context.",
        GetSkill,
        _get_skill,
    ),
)
