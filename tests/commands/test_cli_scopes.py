"""What a token allows bounds what its holder reads over the command line."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from cli_world import Project

from cockpit.access.token_scopes import SCOPES
from cockpit.cli import root
from cockpit.commands.caller_rights import SCOPES_OF_COMMANDS, find_scope

pytestmark = pytest.mark.slow

DECIDE_THEMSELVES = {
    *(
        "run",
        "evolve",
        "review",
        "work",
        "worker",
        "mcp",
        "acp",
        "serve",
        "web",
        "hook",
        "hook install",
        "hook status",
    ),
    *("hook uninstall", "init", "doctor", "demo", "trust files"),
    *("completions", "man", "backup", "restore"),
    *("settings", "settings list", "settings set", "settings unset"),
    *("trust rules accept", "trust rules suspend", "trust rules revoke"),
    *("projects add", "projects forget", "projects list"),
    *("state adopt", "state clean", "state list", "state move", "state show"),
    *("proposals approve", "proposals discuss", "proposals reject"),
    *(
        "proposals edit",
        "proposals rules",
        "agents add",
        "agents check",
        "agents list",
        "agents login",
        "proposals answer",
    ),
    *("skills check", "skills install", "skills list", "skills show"),
    *("task-types list", "task-types show", "task-types check", "task-types new"),
}
"""Commands that look a token up in the transaction that writes, or read no store."""

ARGUMENTS = {
    "chain resume": ("ch-1",),
    "epics show": ("E-1",),
    "events retry": ("e-1",),
    "events show": ("e-1",),
    "feedback show": ("1",),
    "handoff show": ("T-1",),
    "notes show": ("n-1",),
    "outbox show": ("a-1",),
    "sessions export": ("last",),
    "sessions fork": ("last",),
    "sessions jump": ("last",),
    "sessions rename": ("last", "other"),
    "sessions rewind": ("last", "--wave", "1", "--yes"),
    "packet pin": ("f-1",),
    "packet unpin": ("f-1",),
    "profile diff": ("1", "2"),
    "proposals show": ("p-1",),
    "prune": ("--older-than", "30d"),
    "stories show": ("S-1",),
    "tasks show": ("T-1",),
    "tasks diff": ("T-1",),
    "tasks drop": ("T-1",),
    "tasks take": ("T-1",),
    "tools approve": ("count_words",),
    "tools forget": ("count_words",),
    "tools run": ("count_words",),
    "knowledge search": ("rates",),
    "skills load": ("git",),
    "skills unload": ("git",),
    "guards show": ("no_migrations",),
    "tools show": ("count_words",),
    "trust rules show": ("t-1",),
    "wip show": ("T-1",),
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


BOUND = [
    name
    for name, takes_token in commands(root)
    if not takes_token and name not in DECIDE_THEMSELVES
]


def scope_of(name: str) -> str:
    return find_scope(name) or "none"


def test_every_command_that_reads_has_its_scope() -> None:
    assert {scope_of(name) for name in BOUND} <= set(SCOPES)
    groups = {name.split()[0] for name in BOUND}
    assert {name for name in SCOPES_OF_COMMANDS if " " not in name} <= groups
    assert {name for name in SCOPES_OF_COMMANDS if " " in name} <= set(BOUND)


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Project, dict[str, str]]]:
    """A project, and for each scope a token with all others and one with it alone."""
    folder = tmp_path_factory.mktemp("scopes")
    (folder / "project").mkdir()
    (folder / "config").mkdir()
    project = Project(folder / "project", folder / "config")
    project.git("init", "--quiet")
    project.run("tasks", "add", "A task")
    secrets = {}
    for scope in SCOPES:
        for name, scopes in ((scope, [scope]), (f"not {scope}", set(SCOPES) - {scope})):
            words = [word for each in scopes for word in ("--scope", each)]
            issued = project.json("tokens", "issue", "--namespace", "ci", *words, "--json")
            secrets[name] = issued["token"]
    yield project, secrets


@pytest.mark.parametrize("name", BOUND)
def test_without_its_scope_a_command_says_nothing(
    tokens: tuple[Project, dict[str, str]], name: str
) -> None:
    project, secrets = tokens
    scope = scope_of(name)
    project.extra = {"COCKPIT_TOKEN": secrets[f"not {scope}"]}
    words = (*name.split(), *ARGUMENTS.get(name, ()))
    refused = project.run(*words, expect=3)
    assert refused.stdout == ""
    assert scope in refused.stderr


@pytest.mark.parametrize(
    "name", ["journal tail", "metrics", "tasks list", "tokens list", "sessions list"]
)
def test_with_its_scope_and_no_other_a_command_answers(
    tokens: tuple[Project, dict[str, str]], name: str
) -> None:
    project, secrets = tokens
    project.extra = {"COCKPIT_TOKEN": secrets[scope_of(name)]}
    project.run(*name.split())
    project.extra = {"COCKPIT_TOKEN": "ckp_unknown"}
    assert "does not belong to this project" in project.run(*name.split(), expect=3).stderr
