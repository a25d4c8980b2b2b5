"""``cockpit skills``: list, show, check, install and load skills."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cockpit.access import user_presence
from cockpit.cli_options import AS_JSON, examples
from cockpit.commands.exit_codes import Exit
from cockpit.commands.open_project import WrongUse, choose_session, find_project, open_store
from cockpit.commands.terminal import is_terminal, say, show, show_json, show_list
from cockpit.core.errors import NotFound
from cockpit.core.project_paths import user_folder
from cockpit.core.skills.skill import LAYERS, SKILL_FILE, Skill, SkillInvalid
from cockpit.core.text import pluralize

if TYPE_CHECKING:
    from cockpit.core.skills.check_skill import Finding
    from cockpit.loop.skills.project_skills import ProjectSkills

SESSION = click.option("--session", metavar="ID", help="Use this session. Default: the last one.")


@click.group(
    short_help="Manage skills of agents.",
    epilog=examples("cockpit skills list", "cockpit skills show git", "cockpit skills check"),
)
def skills() -> None:
    """Manage skills: instructions for one kind of work that sessions load when they need them.

    They come from cockpit, from your folders (those of other agents too) and from the project.
    """


@skills.command(
    "list", epilog=examples("cockpit skills list", "cockpit skills list --for 'fix the crash'")
)
@click.option(
    "--for",
    "task",
    metavar="TASK",
    help="Show what a task of these words would load or name, and why.",
)
@AS_JSON
def list_skills(task: str | None, as_json: bool) -> None:
    """List skills of all layers.

    Skills that are not used have the reason. With --for it lists only those that a session of this task
    would load, or name for the agent to ask for.
    """
    project_skills = _open_skills()
    if task is not None:
        _list_for(project_skills, task, as_json)
        return
    loaded = project_skills.loaded
    rows = [_describe(skill) for skill in loaded.skills.values()]
    if as_json:
        show_json(
            {
                "skills": rows,
                "problems": list(loaded.problems),
                "untrusted": list(loaded.untrusted),
                "replaced": [
                    {
                        "name": each.name,
                        "layer": each.layer,
                        "by": each.by,
                        "folder": str(each.folder),
                    }
                    for each in loaded.replaced
                ],
            }
        )
        return
    show_list(
        False,
        rows,
        ("NAME", "LAYER", "LINES", "DESCRIPTION"),
        [
            (
                skill.name,
                f"{skill.layer}, replaces {skill.replaces}" if skill.replaces else skill.layer,
                f"{skill.lines:,}" + (" shortened" if _is_shortened(skill) else ""),
                skill.description,
            )
            for skill in loaded.skills.values()
        ],
        "There are no skills.",
    )
    for path in loaded.untrusted:
        say(f"Not used: {path} is not trusted. `cockpit trust` shows it.")
    for problem in loaded.problems:
        say(f"Not used: {problem}")


@skills.command(
    "show", epilog=examples("cockpit skills show git", "cockpit skills show git --for 'squash it'")
)
@click.argument("name")
@click.option(
    "--for", "task", metavar="TASK", help="Show how well it matches a task of these words."
)
@AS_JSON
def show_skill(name: str, task: str | None, as_json: bool) -> None:
    """Show a skill.

    That is where it is from, what it is for, and the core that enters a packet.
    """
    from cockpit.loop.skills.project_skills import shorten_for_packet
    from cockpit.orient.skills.choose_skills import format_score
    from cockpit.orient.skills.rank_skills import rank_skills

    project_skills = _open_skills()
    skill = _find(project_skills, name)
    match = None
    if task is not None:
        ranked = {each.name: each for each in rank_skills(project_skills.index, task)}
        match = ranked.get(name)
    if as_json:
        body = {**_describe(skill), "core": shorten_for_packet(skill), "files": list(skill.files)}
        if task is not None:
            body["score"] = match.score if match else 0
            body["words"] = list(match.words) if match else []
        show_json(body)
        return
    for label, value in (
        ("layer", f"{skill.layer}, replaces {skill.replaces}" if skill.replaces else skill.layer),
        ("folder", str(skill.folder)),
        ("description", skill.description),
        ("keywords", ", ".join(skill.keywords)),
        ("examples", " | ".join(skill.examples)),
        ("task types", ", ".join(skill.task_types)),
        ("names tools", ", ".join(skill.tools)),
        ("license", skill.license),
        ("compatibility", skill.compatibility),
        (
            "core",
            f"{project_skills.fact(name).cost.full:,} tokens, {pluralize(skill.lines, 'line')}",
        ),
        ("files", ", ".join(skill.files)),
        ("digest", skill.digest[:12]),
    ):
        if value:
            show(f"{label:<14}{value}")
    if task is not None:
        words = f" ({', '.join(match.words)})" if match and match.words else ""
        show(f"{'score':<14}{format_score(match.score if match else 0)}{words}")
    show(f"\n{shorten_for_packet(skill)}")


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
@click.option("--yes", is_flag=True, help="Do not ask, as in a script that you wrote.")
@AS_JSON
def install(path: Path, project: bool, replace: bool, yes: bool, as_json: bool) -> None:
    """Install skills of a folder or a ZIP file.

    PATH is a skill, or a folder or checkout with several. They are copied and never run. It shows what they
    are before it writes.
    """
    from cockpit.core.project.project_trust import trust_file
    from cockpit.core.skills.install_skill import install_skill, read_source
    from cockpit.loop.skills.project_skills import shorten_for_packet

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
    if not yes:
        if not is_terminal(sys.stdin):
            raise WrongUse("No terminal to confirm on; nothing was written. Pass --yes.")
        if not click.confirm(f"Copy to {folder}?", default=False, err=True):
            say("Nothing was written.")
            return
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


@skills.command(epilog=examples("cockpit skills load git"))
@click.argument("name")
@SESSION
def load(name: str, session: str | None) -> None:
    """Set a skill to be loaded into a session.

    It is loaded from the next wave on, and stays until you unload it.
    """
    _want(name, session, load_it=True)


@skills.command(epilog=examples("cockpit skills unload git"))
@click.argument("name")
@SESSION
def unload(name: str, session: str | None) -> None:
    """Remove a skill from a session.

    From the next wave on; it comes back only when you mention it.
    """
    _want(name, session, load_it=False)


def _want(name: str, session: str | None, *, load_it: bool) -> None:
    from cockpit.loop.skills.session_skills import want_skill

    if load_it:
        _find(_open_skills(), name)
    user_presence.require_no_agent("loading or unloading a skill")
    with open_store(find_project()) as store:
        session_id = store.read_now(lambda connection: choose_session(connection, session))
        store.write_now(lambda tx: want_skill(tx, session_id, name, load=load_it))
    how = "is in" if load_it else "is out of"
    say(f"{name} {how} the context of {session_id} from its next wave on.")


def _open_skills() -> ProjectSkills:
    from cockpit.loop.skills.project_skills import open_project_skills

    project_skills = open_project_skills(
        find_project(settled=False), user_folder(os.environ), os.environ
    )
    project_skills.refresh()
    return project_skills


def _find(project_skills: ProjectSkills, name: str) -> Skill:
    skill = project_skills.skills.get(name)
    if skill is None:
        raise NotFound(f"There is no skill {name!r}. `cockpit skills list` lists them.")
    return skill


def _is_ours(skill: Skill, *, named: bool) -> bool:
    """Whether the skill was written for cockpit: in cockpit's folders, and those that are named."""
    parent = skill.folder.parent.parent.name
    return named or skill.layer == LAYERS[0] or parent == ".cockpit"


def _is_shortened(skill: Skill) -> bool:
    from cockpit.loop.skills.project_skills import shorten_for_packet

    return shorten_for_packet(skill) != skill.body


def _describe(skill: Skill) -> dict[str, Any]:
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


def _list_for(project_skills: ProjectSkills, task: str, as_json: bool) -> None:
    from cockpit.orient.skills.choose_skills import choose_skills, format_score

    chosen = choose_skills(project_skills.skills, project_skills.index, task)
    tokens = {
        choice.name: 0 if choice.is_named else project_skills.fact(choice.name).cost.full
        for choice in chosen
    }
    show_list(
        as_json,
        [
            {
                "name": choice.name,
                "how": choice.how,
                "why": choice.why,
                "score": choice.score,
                "loaded": not choice.is_named,
                "tokens": tokens[choice.name],
            }
            for choice in chosen
        ],
        ("NAME", "PACKET", "SCORE", "TOKENS", "WHY"),
        [
            (
                choice.name,
                "named" if choice.is_named else "loaded",
                format_score(choice.score) if choice.score else "–",
                f"{tokens[choice.name]:,}",
                choice.why,
            )
            for choice in chosen
        ],
        "This task needs no skill.",
    )
