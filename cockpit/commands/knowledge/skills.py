"""``cockpit skills``: list, show, check, install and load skills."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from cockpit.access import user_presence
from cockpit.cli_options import AS_JSON, examples
from cockpit.commands.collection import Collection, Columns, Listed
from cockpit.commands.confirm import YES, confirm
from cockpit.commands.exit_codes import Exit
from cockpit.commands.open_project import WrongUse, choose_session, find_project, open_store
from cockpit.commands.terminal import say, show, show_json
from cockpit.core.errors import NotFound
from cockpit.core.project_paths import user_folder
from cockpit.core.skills.skill import LAYERS, SKILL_FILE, Skill, SkillInvalid
from cockpit.core.text import pluralize
from cockpit.loop.skills.project_skills import (
    ProjectSkills,
    open_project_skills,
    shorten_for_packet,
)
from cockpit.orient.skills.choose_skills import Choice, choose_skills, format_score

if TYPE_CHECKING:
    from cockpit.core.skills.check_skill import Finding


class SkillRow(Struct, frozen=True):
    """A skill, and how it fits the words of a task where some are given."""

    skill: Skill
    project_skills: ProjectSkills
    choice: Choice | None = None


def _read(task: str | None) -> Listed[SkillRow]:
    project_skills = _open_skills()
    if task is not None:
        chosen = choose_skills(project_skills.skills, project_skills.index, task)
        return Listed(
            [
                SkillRow(project_skills.skills[choice.name], project_skills, choice)
                for choice in chosen
            ]
        )
    loaded = project_skills.loaded
    return Listed(
        [SkillRow(skill, project_skills) for skill in loaded.skills.values()],
        (
            *(
                f"Not used: {path} is not trusted. `cockpit trust` shows it."
                for path in loaded.untrusted
            ),
            *(f"Not used: {problem}" for problem in loaded.problems),
        ),
    )


def _find_row(name: str) -> SkillRow:
    project_skills = _open_skills()
    return SkillRow(_find(project_skills, name), project_skills)


def _layer(skill: Skill) -> str:
    return f"{skill.layer}, replaces {skill.replaces}" if skill.replaces else skill.layer


def _columns(rows: Sequence[SkillRow]) -> Columns[SkillRow]:
    if rows[0].choice is None:
        return {
            "NAME": lambda row: row.skill.name,
            "LAYER": lambda row: _layer(row.skill),
            "LINES": lambda row: (
                f"{row.skill.lines:,}{' shortened' if _is_shortened(row.skill) else ''}"
            ),
            "DESCRIPTION": lambda row: row.skill.description,
        }
    return {
        "NAME": lambda row: row.skill.name,
        "PACKET": lambda row: "loaded" if _record(row)["loaded"] else "named",
        "SCORE": lambda row: format_score(score) if (score := _record(row)["score"]) else "–",
        "TOKENS": lambda row: f"{_record(row)['tokens']:,}",
        "WHY": lambda row: _record(row)["why"],
    }


def _record(row: SkillRow) -> dict[str, Any]:
    skill, choice = row.skill, row.choice
    if choice is not None:
        tokens = 0 if choice.is_named else row.project_skills.fact(skill.name).cost.full
        return {
            "name": skill.name,
            "how": choice.how,
            "why": choice.why,
            "score": choice.score,
            "loaded": not choice.is_named,
            "tokens": tokens,
        }
    return {
        "name": skill.name,
        "layer": skill.layer,
        "replaces": skill.replaces,
        "folder": str(skill.folder),
        "description": skill.description,
        "keywords": list(skill.keywords),
        "examples": list(skill.examples),
        "task_types": list(skill.task_types),
        "lines": skill.lines,
        "shortened": _is_shortened(skill),
        "digest": skill.digest,
    }


def _document(row: SkillRow) -> dict[str, Any]:
    return {
        **_record(row),
        "core": shorten_for_packet(row.skill),
        "files": list(row.skill.files),
    }


def _describe(row: SkillRow) -> str:
    skill = row.skill
    tokens = row.project_skills.fact(skill.name).cost.full
    fields = (
        ("layer", _layer(skill)),
        ("folder", str(skill.folder)),
        ("description", skill.description),
        ("keywords", ", ".join(skill.keywords)),
        ("examples", " | ".join(skill.examples)),
        ("task types", ", ".join(skill.task_types)),
        ("names tools", ", ".join(skill.tools)),
        ("license", skill.license),
        ("compatibility", skill.compatibility),
        ("core", f"{tokens:,} tokens, {pluralize(skill.lines, 'line')}"),
        ("files", ", ".join(skill.files)),
        ("digest", skill.digest[:12]),
    )
    lines = [f"{label:<14}{value}" for label, value in fields if value]
    return "\n".join([*lines, "", shorten_for_packet(skill)])


skills = Collection(
    "skills",
    short_help="Manage skills of agents.",
    help="""Manage skills: instructions for one kind of work that sessions load when they need them.

    They come from cockpit, from your folders (those of other agents too) and from the project. With --for it
    lists those that a session of this task would load, or name for the agent to ask for. Of one skill it
    shows where it is from, what it is for, and the core that enters a packet.
    """,
    examples=(
        "cockpit skills",
        "cockpit skills --for 'fix the crash'",
        "cockpit skills git",
        "cockpit skills check",
    ),
    row="NAME",
    columns=_columns,
    read=_read,
    find=_find_row,
    describe=_describe,
    none=lambda task: "There are no skills." if task is None else "This task needs no skill.",
    body=_record,
    document=_document,
    filters=[
        click.option(
            "--for",
            "task",
            metavar="TASK",
            help="List what a task of these words would load or name, and why.",
        )
    ],
)


@skills.command(
    epilog=examples("cockpit skills check", "cockpit skills check .cockpit/skills/deploy")
)
@click.argument("skill", nargs=-1)
@click.option("--strict", is_flag=True, help="Do not let warnings pass either.")
@AS_JSON
@click.pass_context
def check(ctx: click.Context, /, skill: tuple[str, ...], strict: bool, as_json: bool) -> None:
    """Check the layout of skills.

    It looks at front matter, the length of the core, and named files. SKILL is a name or a folder; without
    one it checks all. It ends with 1 if one has an error. Of skills that were written for other agents a
    long core is a warning.
    """
    from cockpit.core.skills.check_skill import check_skill
    from cockpit.core.skills.skill_layers import read_folder

    reports: list[tuple[str, str, list[tuple[bool, str]]]] = []
    project_skills = (
        None if skill and all(Path(each).is_dir() for each in skill) else _open_skills()
    )
    targets: list[Skill] = []
    for each in skill:
        folder = Path(each)
        if (folder / SKILL_FILE).is_file() or (folder.is_dir() and project_skills is None):
            try:
                targets.append(read_folder(folder.resolve()))
            except SkillInvalid as error:
                reports.append((each, "", [(True, str(error))]))
        else:
            assert project_skills is not None  # noqa: S101 - it is opened for everything that is not a folder
            targets.append(_find(project_skills, each))
    if not skill and project_skills is not None:
        targets = list(project_skills.skills.values())
        reports += [
            (problem.split(":")[0], "", [(True, problem)])
            for problem in project_skills.loaded.problems
        ]
    for target in targets:
        findings: tuple[Finding, ...] = check_skill(
            target, is_ours=_is_ours(target, named=bool(skill))
        )
        lines = [(finding.is_error or strict, finding.text) for finding in findings]
        reports.append((target.name, target.layer, lines))
    failed = any(is_error for _, _, lines in reports for is_error, _ in lines)
    if as_json:
        show_json(
            [
                {
                    "skill": name,
                    "ok": not any(is_error for is_error, _ in lines),
                    "findings": [{"error": is_error, "text": text} for is_error, text in lines],
                }
                for name, _, lines in reports
            ]
        )
    else:
        for name, _, lines in reports:
            is_bad = any(is_error for is_error, _ in lines)
            show(f"{'error' if is_bad else 'ok   '}  {name}")
            for is_error, text in lines:
                show(f"         {'error' if is_error else 'warning'}: {text}")
    if failed:
        ctx.exit(Exit.FAILED)


@skills.command(
    epilog=examples("cockpit skills install ~/skills/deploy", "cockpit skills install all.zip")
)
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--project",
    is_flag=True,
    help="Write to the project's .cockpit/skills. Default: for you alone.",
)
@click.option("--replace", is_flag=True, help="Put it in the place of one of the same name.")
@YES
@AS_JSON
def install(path: Path, project: bool, replace: bool, yes: bool, as_json: bool) -> None:
    """Install skills of a folder or a ZIP file.

    PATH is a skill, or a folder or checkout with several. They are copied and never run. It shows what they
    are before it writes.
    """
    from cockpit.core.project.project_trust import trust_file
    from cockpit.core.skills.install_skill import install_skill, read_source

    if os.environ.get("COCKPIT_TOKEN"):
        raise WrongUse(
            "Only you can install a skill, not the holder of a token. Run it without COCKPIT_TOKEN."
        )
    user_presence.require_no_agent("installing a skill")
    installables = read_source(path.expanduser())
    place = find_project() if project else None
    folder = place.folder / "skills" if place is not None else user_folder(os.environ) / "skills"
    if not as_json:
        for each in installables:
            show(f"{each.skill.name}: {each.skill.description}")
            names = ", ".join(str(file.path) for file in each.files)
            show(
                f"  {pluralize(len(each.files), 'file')}: {names}\n\n{shorten_for_packet(each.skill)}\n"
            )
    confirm(f"Copy to {folder}?", yes=yes, undone="nothing was written")
    written = []
    for each in installables:
        target = install_skill(each, folder, replaces=replace)
        written.append(str(target))
        if place is not None:
            trust_file(place, target / SKILL_FILE, (target / SKILL_FILE).read_bytes())
    if as_json:
        show_json({"installed": written})
        return
    for target_name in written:
        say(f"Installed {target_name}.")


@skills.command(epilog=examples("cockpit skills load git", "cockpit skills load git --off"))
@click.argument("name")
@click.option("--session", metavar="ID", help="Use this session. Default: the last one.")
@click.option("--off", is_flag=True, help="Remove it; it comes back only when you mention it.")
def load(name: str, session: str | None, off: bool) -> None:
    """Set a skill to be loaded into a session.

    It is loaded from the next wave on, and stays until you remove it with --off.
    """
    from cockpit.loop.skills.session_skills import want_skill

    if not off:
        _find(_open_skills(), name)
    user_presence.require_no_agent("loading or unloading a skill")
    with open_store(find_project()) as store:
        session_id = store.read_now(lambda connection: choose_session(connection, session))
        store.write_now(lambda tx: want_skill(tx, session_id, name, load=not off))
    how = "is out of" if off else "is in"
    say(f"{name} {how} the context of {session_id} from its next wave on.")


def _open_skills() -> ProjectSkills:
    project_skills = open_project_skills(find_project(), user_folder(os.environ), os.environ)
    project_skills.refresh()
    return project_skills


def _find(project_skills: ProjectSkills, name: str) -> Skill:
    skill = project_skills.skills.get(name)
    if skill is None:
        raise NotFound(f"There is no skill {name!r}.")
    return skill


def _is_ours(skill: Skill, *, named: bool) -> bool:
    """Whether the skill was written for cockpit: in cockpit's folders, and those that are named."""
    parent = skill.folder.parent.parent.name
    return named or skill.layer == LAYERS[0] or parent == ".cockpit"


def _is_shortened(skill: Skill) -> bool:
    return shorten_for_packet(skill) != skill.body
