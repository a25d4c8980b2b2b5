"""Skills: what agents can load, what the session that the user looks at has of them, and why.

Specified in ``docs/reference/skills.md``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins
from msgspec.structs import replace

from cockpit.access.user_presence import require_no_agent
from cockpit.collections.collection import Collection, Doing, Field, Listed, Part, Verb, View
from cockpit.core.errors import NotFound
from cockpit.core.skills.skill import LAYERS, Skill
from cockpit.core.text import pluralize

if TYPE_CHECKING:
    from cockpit.loop.skills.list_skills import ListedSkill
    from cockpit.loop.skills.project_skills import ProjectSkills

_ABSENT = ("available", "named", "leaves")
_AS_OFFERS = {"loaded": "active", "waits": "offered", "leaves": "suspended", "named": "new"}


def _open(view: View) -> ProjectSkills:
    from cockpit.loop.skills.project_skills import open_project_skills

    project_skills = open_project_skills(view.place, view.user_dir, os.environ)
    project_skills.refresh()
    return project_skills


def _read(view: View, task: str | None) -> Listed[ListedSkill]:
    from cockpit.loop.skills.list_skills import list_skills

    project_skills = _open(view)
    rows = list_skills(view.connection, project_skills, view.session_id)
    if task is not None:
        return Listed(_choose(project_skills, rows, task))
    untrusted = [
        f"Not used: {path} is not trusted. `cockpit trust` shows it."
        for path in project_skills.loaded.untrusted
    ]
    problems = [f"Not used: {problem}" for problem in project_skills.loaded.problems]
    return Listed(rows, (*untrusted, *problems))


def _choose(
    project_skills: ProjectSkills, rows: Sequence[ListedSkill], task: str
) -> Sequence[ListedSkill]:
    """Return the skills that a task of these words would load or name."""
    from cockpit.orient.skills.choose_skills import choose_skills

    by_name = {row.skill.name: row for row in rows}
    return [
        replace(
            by_name[choice.name],
            state="named" if choice.is_named else "loaded",
            why=choice.why,
            tokens=0 if choice.is_named else by_name[choice.name].tokens,
            score=choice.score,
        )
        for choice in choose_skills(project_skills.skills, project_skills.index, task)
    ]


def _find(view: View, name: str) -> ListedSkill:
    for row in _read(view, None).rows:
        if row.skill.name == name:
            return row
    raise NotFound(f"There is no skill {name!r}.")


def _toggle(doing: Doing, row: ListedSkill) -> str:
    from cockpit.loop.skills.session_skills import want_skill

    require_no_agent("loading or unloading a skill")
    session_id, loads = doing.view.session_id, row.state in _ABSENT
    want_skill(doing.tx, session_id, row.skill.name, load=loads)
    how = "is in" if loads else "is out of"
    return f"{row.skill.name} {how} the context of {session_id} from its next wave on."


def _layer(skill: Skill) -> str:
    return f"{skill.layer}, replaces {skill.replaces}" if skill.replaces else skill.layer


def _columns(rows: Sequence[ListedSkill]) -> Mapping[str, Any]:
    from cockpit.orient.skills.choose_skills import format_score

    name = {"NAME": lambda row: row.skill.name}
    state = {"STATE": lambda row: row.state}
    if any(row.score is not None for row in rows):
        return {
            **name,
            **state,
            "SCORE": lambda row: "–" if row.score is None else format_score(row.score),
            "TOKENS": lambda row: f"{row.tokens:,}",
            "WHY": lambda row: row.why,
        }
    return {
        **name,
        **(state if any(row.state != "available" for row in rows) else {}),
        "LAYER": lambda row: _layer(row.skill),
        "LINES": lambda row: (
            f"{row.skill.lines:,}{' shortened' if row.core != row.skill.body else ''}"
        ),
        "DESCRIPTION": lambda row: row.skill.description,
    }


def _body(row: ListedSkill) -> dict[str, Any]:
    skill: dict[str, Any] = to_builtins(row.skill, enc_hook=str)
    del skill["body"]
    is_short = row.core != row.skill.body
    fit = {"state": row.state, "why": row.why, "tokens": row.tokens, "score": row.score}
    return {**skill, **fit, "lines": row.skill.lines, "shortened": is_short}


def find_problems(skill: Skill) -> Sequence[tuple[str, str]]:
    """Return what is wrong with a skill, or odd, each as an error or a warning."""
    from cockpit.core.skills.check_skill import check_skill

    is_ours = skill.layer == LAYERS[0] or skill.folder.parent.parent.name == ".cockpit"
    return [
        ("error" if finding.is_error else "warning", finding.text)
        for finding in check_skill(skill, is_ours=is_ours)
    ]


def _detail(row: ListedSkill) -> Sequence[Part]:
    skill = row.skill
    facts = [
        ("layer", _layer(skill)),
        ("folder", "" if skill.layer == LAYERS[0] else str(skill.folder)),
        ("why", row.why),
        ("keywords", ", ".join(skill.keywords)),
        ("examples", " | ".join(skill.examples)),
        ("task types", ", ".join(skill.task_types)),
        ("names tools", ", ".join(skill.tools)),
        ("license", skill.license),
        ("compatibility", skill.compatibility),
        ("core", f"{row.tokens:,} tokens, {pluralize(skill.lines, 'line')}"),
        ("files", ", ".join(skill.files)),
        ("digest", skill.digest[:12]),
    ]
    return (
        Part(text=skill.name),
        Part(text=skill.description),
        Part(fields=facts),
        Part("problems", find_problems(skill)),
        Part("what enters the packet", text=row.core),
    )


def _count(rows: Sequence[ListedSkill]) -> str:
    loaded = [row for row in rows if row.state in ("loaded", "leaves")]
    tokens = sum(row.tokens for row in loaded)
    return f"{len(loaded)} of {pluralize(len(rows), 'skill')} loaded, {tokens:,} tokens"


def _about(row: ListedSkill) -> str:
    why = row.why if row.state in ("loaded", "named") else ""
    return f"{row.tokens:,} tokens · {why}" if why else row.skill.layer


COLLECTION: Collection[ListedSkill] = Collection(
    name="skills",
    command="skills",
    title="Skills",
    summary="Manage skills of agents.",
    help="""Manage skills: instructions for one kind of work that sessions load when they need them.

    They come from cockpit, from your folders (those of other agents too) and from the project. With --for it
    lists those that a session of this task would load, or name for the agent to ask for. Of one skill it
    shows where it is from, what is wrong with it, and the core that enters a packet.
    """,
    examples=("cockpit skills", "cockpit skills --for 'fix the crash'", "cockpit skills git"),
    row="NAME",
    sample="git",
    columns=_columns,
    read=_read,
    find=_find,
    none=lambda task=None: "There are no skills." if task is None else "This task needs no skill.",
    detail=_detail,
    body=_body,
    document=lambda row: {
        **_body(row),
        "core": row.core,
        "problems": [": ".join(each) for each in find_problems(row.skill)],
    },
    filters=(
        Field(
            "task",
            "List what a task of these words would load or name, and why.",
            "--for",
            metavar="TASK",
        ),
    ),
    source="files",
    key="alt+k",
    state=lambda row: _AS_OFFERS.get(row.state, "gone"),
    line=lambda row: row.skill.description,
    about=_about,
    headline=_count,
    reads_files=True,
    verbs=(
        Verb(
            "load",
            "Load or unload a skill",
            _toggle,
            key="l",
            activity="loading or unloading a skill",
            who="holder",
            label=lambda row: "load" if row.state in _ABSENT else "unload",
            is_enter=True,
            has_command=False,
            needs_session=True,
        ),
    ),
)
