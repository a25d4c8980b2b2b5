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
acp, agents add, agents check, agents list, agents login, backup, completions, demo, doctor, evolve
hook, hook install, hook status, hook uninstall, init, mcp, projects add, projects forget, projects list
proposals answer, proposals approve, proposals discuss, proposals edit, proposals reject, proposals rules
restore, review, run, serve, settings, settings list, settings set, settings unset, skills check
skills install, skills list, skills show, state adopt, state clean, state list, state move, state show
task-types list, task-types show, task-types check, task-types new, trust files, trust rules accept
trust rules revoke, trust rules suspend, web, work, worker
""".replace("\n", ", ").split(", ")
"""Commands that look a token up in the transaction that writes, or read no store."""

ARGUMENTS = {
    **dict.fromkeys(("tasks show", "tasks diff", "tasks drop", "tasks take", "wip show"), "T-1"),
    **dict.fromkeys(("sessions export", "sessions fork", "sessions jump"), "last"),
    **dict.fromkeys(("packet pin", "packet unpin"), "f-1"),
    **dict.fromkeys(("tools approve", "tools forget", "tools run", "tools show"), "count_words"),
    **dict.fromkeys(("events retry", "events show"), "e-1"),
    **dict.fromkeys(("skills load", "skills unload"), "git"),
    "chain resume": "ch-1",
    "epics show": "E-1",
    "stories show": "S-1",
    "handoff show": "T-1",
    "feedback show": "1",
    "notes show": "n-1",
    "outbox show": "a-1",
    "proposals show": "p-1",
    "sessions rename": "last other",
    "sessions rewind": "last --wave 1 --yes",
    "profile diff": "1 2",
    "prune": "--older-than 30d",
    "knowledge search": "rates",
    "guards show": "no_migrations",
    "trust rules show": "t-1",
}


def commands(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[str, bool]]:
    """Every command, and whether it takes a token."""
    if not isinstance(command, click.Group):
        yield " ".join(words), any(option.name == "token" for option in command.params)
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner is not None
        yield from commands(inner, (*words, name))


BOUND = [name for name, takes in commands(root) if not takes and name not in DECIDE_THEMSELVES]


@pytest.mark.search
def test_without_its_scope_a_command_says_nothing(project: Project) -> None:
    assert {find_scope(name) or "none" for name in BOUND} <= set(SCOPES)
    groups = {name.split()[0] for name in BOUND}
    assert {name for name in SCOPES_OF_COMMANDS if " " not in name} <= groups
    assert {name for name in SCOPES_OF_COMMANDS if " " in name} <= set(BOUND)
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
        refused = project.run(*name.split(), *ARGUMENTS.get(name, "").split(), expect=3)
        assert refused.stdout == "", name
        assert scope in refused.stderr, name
    for name in ("journal tail", "metrics", "tasks list", "tokens list", "sessions list"):
        project.extra = {"COCKPIT_TOKEN": own[find_scope(name)]}
        project.run(*name.split())
    project.extra = {"COCKPIT_TOKEN": "ckp_unknown"}
    assert "does not belong to this project" in project.run("metrics", expect=3).stderr
