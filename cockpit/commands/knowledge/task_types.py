"""``cockpit task-types``: the group of the collection, and writing task types."""

from __future__ import annotations

import os

import click

from cockpit.access.user_presence import require_no_agent
from cockpit.cli_options import examples
from cockpit.collections.task_types import COLLECTION
from cockpit.commands.collection_groups import make_group
from cockpit.commands.open_project import WrongUse, find_project
from cockpit.commands.terminal import say
from cockpit.core.errors import StoreUnwritable
from cockpit.core.project_paths import user_folder
from cockpit.loop.intake.task_types import check_name, project_file

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


task_types = make_group(COLLECTION)


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
