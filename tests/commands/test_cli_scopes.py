"""What a token allows bounds what its holder reads over the command line."""

from __future__ import annotations

import random
from collections.abc import Iterator

import click
import pytest
from cli_world import Project
from examples import examples
from state_for_tests import state_of

from cockpit.access import capability_tokens
from cockpit.access.principals import PERSON
from cockpit.access.token_scopes import SCOPES
from cockpit.cli import root
from cockpit.commands.caller_rights import SCOPES_OF_COMMANDS, find_scope
from cockpit.store.db.database import Store

pytestmark = pytest.mark.slow

DECIDE_THEMSELVES = """
acp, agents add, agents check, agents list, agents login, backup, completions, debug state
demo, doctor, evolve, feedback give
hook install, hook list, init, mcp, notes add, notes forget
notes keep, plan, profile propose, profile rollback, projects add
projects list, proposals answer, proposals approve, proposals discuss, proposals reject
review, run, serve, settings list, settings set, skills install
skills list, task-types list, task-types new, tasks add
tasks dep, tasks edit, tasks import, tasks move, tasks note, tokens issue, tokens revoke
tools run, trust list, trust rules accept, trust rules revoke
web, work, worker
""".replace("\n", ", ").split(", ")
"""Commands that look a token up in the transaction that writes, or read no store."""

ARGUMENTS = {
    **dict.fromkeys(("chain diff", "chain drop", "chain take"), "T-1"),
    **dict.fromkeys(("sessions export", "sessions fork", "sessions jump"), "last"),
    "packet pin": "f-1",
    "skills load": "git",
    "debug events list": "e-1 --retry",
    "sessions rename": "last other",
    "sessions rewind": "last --wave 1 --yes",
    "profile propose --suggested": "",
    "prune": "--older-than 30d",
    "knowledge": "rates",
    "debug show": "trust",
}


def commands(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[str]:
    """Every command; that of a collection without a verb is its ``list``."""
    if not isinstance(command, click.Group):
        yield " ".join(words)
        return
    if words and command.invoke_without_command:
        yield " ".join((*words, "list"))
    context = click.Context(command)
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner is not None
        yield from commands(inner, (*words, name))


BOUND = [name for name in commands(root) if name not in DECIDE_THEMSELVES]
BOUND += ["knowledge --index", "profile propose --suggested"]


@pytest.mark.search
def test_without_its_scope_a_command_says_nothing(project: Project) -> None:
    assert {find_scope(name) or "none" for name in BOUND} <= set(SCOPES)
    groups = {name.rpartition(" ")[0] for name in BOUND}
    assert set(SCOPES_OF_COMMANDS) <= {*BOUND, *groups}
    project.run("tasks", "add", "A task")

    with Store.open(state_of(project.root) / "cockpit.db") as store:

        def issue(*scopes: str) -> str:
            given = {"namespace": "ci", "scopes": frozenset(scopes), "by": PERSON}
            return store.write_now(lambda tx: capability_tokens.issue(tx, **given))[1]

        others = {scope: issue(*(set(SCOPES) - {scope})) for scope in SCOPES}
        own = {scope: issue(scope) for scope in SCOPES}
    for name in random.sample(BOUND, min(len(BOUND), examples(25))):
        scope = find_scope(name)
        project.extra = {"COCKPIT_TOKEN": others[scope]}
        words = name.removesuffix(" list").split()
        refused = project.run(*words, *ARGUMENTS.get(name, "").split(), expect=3)
        assert refused.stdout == "", name
        assert scope in refused.stderr, name
    for name in ("journal", "debug show", "tasks list", "tokens list", "sessions list"):
        project.extra = {"COCKPIT_TOKEN": own[find_scope(name)]}
        project.run(*name.removesuffix(" list").split(), *ARGUMENTS.get(name, "").split())
    project.extra = {"COCKPIT_TOKEN": "ckp_unknown"}
    refused = project.run("debug", "show", "metrics", expect=3)
    assert "does not belong to this project" in refused.stderr
