"""Previews of commands, and of ``gh`` commands that write."""

from __future__ import annotations

import shlex

from cockpit.access.commands.judge_command import CommandPlace, CommandVerdict, Risk, judge_command
from cockpit.access.gh_command import GhCommand, parse_gh
from cockpit.act.named_scripts import NamedScripts, find_scripts
from cockpit.act.plan_push import plan_pull_request
from cockpit.act.proposed_action import ActionPreview
from cockpit.act.sandbox.visible_places import homes
from cockpit.act.text_edits import ActionRefused
from cockpit.act.tool_payloads import GitHub, Run
from cockpit.act.workspace import Workspace

_PUBLIC = {"approve", "merge", "squash", "rebase", "delete-branch"}


def preview_run(payload: Run, ground: Workspace, *, reads: bool = False) -> ActionPreview:
    """Preview a command: its argv, where it runs, and its sandbox.

    With ``reads`` it runs in the reading sandbox, where it can change nothing.
    """
    sandbox = ground.sandbox
    place = CommandPlace(sandbox.works, str(ground.root))
    verdict = judge_command(payload.argv, place)
    line = shlex.join(payload.argv)
    if verdict.denied:
        raise ActionRefused(f"{line[:200]} is not run. {verdict.denied}")
    scripts = NamedScripts() if reads else find_scripts(payload.argv, ground.confined)
    runs = {"scripts": scripts.pins(), "tree": scripts.tree, "reading": reads}
    where = "reading: project read-only and without secrets, no network, nothing kept"
    # Without a sandbox nobody knows what such a command reaches.
    risk: Risk = "low" if reads else "high" if verdict.waits else verdict.risk
    return ActionPreview(
        type="run",
        title=f"run {line}" if len(line) <= 120 else f"run {line[:119]}…",
        risk=risk,
        summary=payload.reason,
        fields=(
            ("argv", line),
            ("cwd", "."),
            ("sandbox", where if reads else sandbox.words()),
            ("time limit", f"{payload.timeout_s} s"),
            ("reason", payload.reason),
            *(("script", script.describe()) for script in scripts.present),
        ),
        body=scripts.body(),
        notes=() if reads else (*_list_notes(verdict, ground), *scripts.notes()),
        payload={
            "argv": list(payload.argv),
            "timeout_s": payload.timeout_s,
            "sandboxed": reads or sandbox.works,
            **{name: value for name, value in runs.items() if value},
        },
    )


def _list_notes(verdict: CommandVerdict, ground: Workspace) -> list[str]:
    sandbox = ground.sandbox
    notes = [*sandbox.notes(), *(f"Risk: {reason}." for reason in verdict.reasons)]
    if sandbox.works and any(
        home.is_relative_to(ground.root) for home in homes(ground.environment)
    ):
        notes.append(
            "The project contains your home directory: nothing of it is hidden in the sandbox."
        )
    if sandbox.works and verdict.effect == "leaves":
        notes.append("The network is off in the sandbox; what needs it will fail.")
    return notes


async def preview_github(payload: GitHub, ground: Workspace) -> ActionPreview:
    """Preview a ``gh`` command as it was parsed: its fields, the whole body, and what it pushes first."""
    command = parse_gh(payload.command, project_repo=ground.repo)
    if command.access == "read":
        raise ActionRefused(explain_read(command))
    push = None
    if (command.area, command.verb) == ("pr", "create"):
        command, push = await plan_pull_request(command, ground)
    name = f"gh {command.area} {command.verb}"
    about = [str(command.number)] if command.number is not None else []
    flags = [f"--{name}" for name, value in command.fields if value == "yes"]
    fields = [("command", name)]
    if command.number is not None:
        fields.append(("number", str(command.number)))
    if command.repo is not None:
        fields.append(("repository", command.repo))
    notes = []
    if push is not None:
        fields += push.fields()
        notes += push.notes()
    if command.body is not None:
        notes.append(
            "A hidden comment with this action's key is added at the end of the body, so that it is "
            "never posted twice."
        )
    return ActionPreview(
        type="github",
        title=" ".join([name, *about, *flags]),
        risk=_github_risk(command),
        summary=f"{push.summary() if push else 'Post to GitHub: '}{' '.join([name, *about, *flags])}",
        fields=(*fields, *command.fields),
        body=command.body or "",
        notes=tuple(notes),
        payload={"argv": list(command.argv), **({"push": push.payload()} if push else {})},
    )


def explain_read(command: GhCommand) -> str:
    """Return the message for a model that tried to read through the ``github`` tool."""
    item = {"pr": "pr:", "issue": "issue:"}.get(command.area)
    scope = f"{item}{command.number}" if item and command.number else "pr:N or issue:N"
    return (
        f"gh {command.area} {command.verb} only reads, and reading is not an action: use "
        f"request_context with {scope}."
    )


def _github_risk(command: GhCommand) -> Risk:
    names = {name for name, _ in command.fields}
    return "high" if command.verb == "merge" or names & _PUBLIC else "medium"
