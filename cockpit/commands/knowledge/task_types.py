"""``cockpit task-types``: list, show, check and write task types."""

from __future__ import annotations

import os
from pathlib import Path

import click

from cockpit.access.user_presence import require_no_agent
from cockpit.cli_options import examples
from cockpit.commands.collection import Collection, Listed
from cockpit.commands.exit_codes import Exit
from cockpit.commands.open_project import WrongUse, find_project
from cockpit.commands.terminal import say
from cockpit.core.errors import NotFound, StoreUnwritable
from cockpit.core.project_paths import user_folder
from cockpit.loop.intake.layered_files import LayeredFileInvalid
from cockpit.loop.intake.task_types import (
    TaskType,
    check_name,
    check_task_type,
    load_task_types,
    project_file,
)

_TEMPLATE = """+++
name = "{name}"
command = "/{command}"
arguments = "<words>"
# Read before anything is asked: scope items; "?" before one that may be missing.
deterministic = ["?issue:{{issue}}", "?file:{{file}}"]
dod = ["**Done**: what holds when the task is done"]
# Skills that its tasks may load by themselves; none: all.
skills = []
# Added to what the layers below say:
non_negotiables = []
context_hints = []
expects_change = true

# A file for a type that exists replaces the keys that it names. To add to a list instead:
# [extend]
# dod = ["**Measured**: numbers before and after"]
+++
"""


def _read() -> Listed[TaskType]:
    types, problems = _load()
    return Listed(list(types.values()), [f"Not used: {problem}" for problem in problems])


def _find(name: str) -> TaskType:
    types, problems = _load()
    kind = types.get(name)
    if kind is None:
        about = " ".join(problem for problem in problems if name in problem)
        there = f"There are {', '.join(sorted(types))}."
        raise NotFound(f"There is no task type {name}. {about or there}")
    return kind


def _load() -> tuple[dict[str, TaskType], tuple[str, ...]]:
    loaded = load_task_types(find_project().home, user_folder(os.environ))
    return dict(loaded.types), loaded.problems


def _describe(kind: TaskType) -> str:
    parts = [
        f"{kind.name}  {kind.command} {kind.arguments}".rstrip(),
        f"changed last by: the {kind.source_layer} layer",
        f"policy: {kind.policy or 'as configured'}"
        f" · {'reads only' if kind.reads_only else 'may act'}"
        f" · {'done with a change only' if kind.must_change else 'done without a change too'}",
    ]
    for title, lines in (
        ("also called", kind.aliases),
        ("starts from", kind.deterministic),
        ("tools that help", kind.tools),
        ("done means", kind.dod),
        ("skills that it may load", (*kind.skills, *kind.project_skills)),
        ("non-negotiables", kind.non_negotiables),
        ("where things are", kind.context_hints),
    ):
        if lines:
            parts.append(f"\n{title}:\n" + "\n".join(f"  - {line}" for line in lines))
    return "\n".join(parts)


task_types = Collection(
    "task-types",
    short_help="List, check and write task types.",
    help="""List, show, check and write the task types that apply here.

    A task type says what a kind of work needs: command, context, tools, Definition of Done, skills, policy.
    One is shown as its layers make it.
    """,
    examples=("cockpit task-types", "cockpit task-types bug", "cockpit task-types new migration"),
    row="NAME",
    columns={
        "TYPE": lambda kind: kind.name,
        "COMMAND": lambda kind: f"{kind.command} {kind.arguments}".strip(),
        "LAYER": lambda kind: kind.source_layer,
        "POLICY": lambda kind: kind.policy or "–",
        "DONE MEANS": lambda kind: f"{len(kind.dod)} points",
    },
    read=_read,
    find=_find,
    describe=_describe,
    none="No task types.",
)


@task_types.command(
    "check",
    epilog=examples("cockpit task-types check", "cockpit task-types check my-types/migration.md"),
)
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.pass_context
def check_task_types(ctx: click.Context, /, files: tuple[Path, ...]) -> None:
    """Check files of task types, or all in use.

    A file is checked as one of your own over the task types that apply here; nothing is changed.
    """
    types, problems = _load()
    if files:
        problems = ()
        for file in files:
            try:
                kind = check_task_type(file, "user", types)
            except LayeredFileInvalid as error:
                problems += (str(error),)
            else:
                say(f"ok  {file}: {kind.name}, {len(kind.dod)} points in its Definition of Done")
    for problem in problems:
        say(f"not used  {problem}")
    if problems:
        ctx.exit(Exit.WRONG_USE)
    if not files:
        say(f"All {len(types)} task types can be used.")


@task_types.command(
    "new",
    epilog=examples("cockpit task-types new migration", "cockpit task-types new api --project"),
)
@click.argument("name")
@click.option(
    "--project",
    "for_project",
    is_flag=True,
    help="Write it for everyone who works on this project.",
)
def new_task_type(name: str, for_project: bool) -> None:
    """Write a file for a new task type.

    You complete it. Its place is your configuration folder; with --project the project's .cockpit/task-types,
    which you trust with `cockpit trust` once it is complete. A file that exists is not touched.
    """
    require_no_agent("writing a task type")
    check_name(name)
    if for_project:
        path = find_project().home / project_file(name)
    else:
        path = user_folder(os.environ) / "task-types" / f"{name}.md"
    text = _TEMPLATE.format(name=name, command=name.replace("_", "-"))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise WrongUse(f"{path} exists already. Edit it, or choose another name.") from error
    except OSError as error:
        raise StoreUnwritable(f"{path} cannot be written: {error.strerror or error}.") from error
    say(f"written  {path}")
    if for_project:
        say(
            "Complete it, then run `cockpit trust`: contents that you have not seen are not loaded."
        )
