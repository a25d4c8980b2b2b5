"""Post to GitHub through ``gh``: the body by standard input, with a hidden key to find it again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cockpit.access.gh_command import GhCommand, parse_gh
from cockpit.access.run_program import Finished, ProgramMissing, run_gh
from cockpit.act.adapters.adapter import Found, Outcome, failed, succeeded, tail
from cockpit.act.adapters.push_branch import push_branch
from cockpit.act.workspace import Workspace
from cockpit.core.errors import CockpitError
from cockpit.core.read_record import convert

_TIMEOUT_S = 60.0
_NOT_SENT = (
    "could not resolve host",
    "no such host",
    "connection refused",
    "network is unreachable",
    "error connecting to",
)
_PASSING = (
    "http 500",
    "http 502",
    "http 503",
    "http 504",
    "http 429",
    "rate limit",
    "timeout",
    "timed out",
    "connection reset",
    "eof",
    "tls handshake",
)
_MARKED = {
    ("pr", "review"),
    ("pr", "comment"),
    ("issue", "comment"),
    ("pr", "create"),
    ("issue", "create"),
}
_STATES = {"merge": ("MERGED",), "close": ("CLOSED", "MERGED"), "reopen": ("OPEN",)}


def marker(key: str) -> str:
    """Return the hidden comment that names the action of a body."""
    return f"<!-- cockpit:{key} -->"


class GitHubAdapter:
    """Performs ``github``."""

    ends_when_cancelled = False

    async def perform(self, payload: Mapping[str, Any], key: str, ground: Workspace) -> Outcome:
        """Run the command of the preview."""
        command = _command(payload, ground)
        marked = command
        if (command.area, command.verb) in _MARKED:
            marked = command.with_body(f"{command.body or ''}\n\n{marker(key)}".lstrip())
        argv, body = marked.execution_argv()
        if payload.get("push") and (failure := await push_branch(payload["push"], ground)):
            return failure
        try:
            finished = await run_gh(argv, cwd=ground.root, timeout_s=_TIMEOUT_S, stdin=body)
        except ProgramMissing:
            return failed(
                "permanent", "gh, GitHub's command line, is not installed (cli.github.com)."
            )
        return _outcome(command, finished)

    async def probe(self, payload: Mapping[str, Any], key: str, ground: Workspace) -> Found:
        """Search the hidden key in posted texts, or read the state that the command sets."""
        command = _command(payload, ground)
        number = [str(command.number)] if command.number is not None else []
        kind = (command.area, command.verb)
        names = {name for name, _ in command.fields}
        try:
            if command.verb == "comment" or kind == ("pr", "review"):
                fields = "comments,reviews" if command.area == "pr" else "comments"
                seen = await _json(ground, [command.area, "view", *number, "--json", fields])
                return "unknown" if seen is None else _bodies(seen, marker(key))
            if command.verb == "create":
                listed = ["list", "--state", "all", "--limit", "100", "--json", "number,body"]
                seen = await _json(ground, [command.area, *listed])
                return "unknown" if seen is None else _bodies({"items": seen}, marker(key))
            if command.verb in _STATES and "comment" not in names:
                seen = await _json(ground, [command.area, "view", *number, "--json", "state"])
                if not isinstance(seen, dict):
                    return "unknown"
                return "done" if seen.get("state") in _STATES[command.verb] else "not_done"
        except ProgramMissing:
            return "unknown"
        if command.verb in {"edit", "ready"}:
            # Setting the same values twice is the same as once.
            return "not_done"
        return "unknown"


def _command(payload: Mapping[str, Any], ground: Workspace) -> GhCommand:
    command = parse_gh(convert(payload["argv"], list[str]), project_repo=ground.repo)
    if command.access != "write" or list(command.argv) != payload["argv"]:
        raise CockpitError("The gh command is not the one that was shown; it was not run.")
    return command


async def _json(ground: Workspace, words: list[str]) -> Any:
    repo = ["--repo", ground.repo] if ground.repo else []
    finished = await run_gh(["gh", *words, *repo], cwd=ground.root, timeout_s=_TIMEOUT_S)
    if not finished.ok:
        return None
    try:
        return json.loads(finished.text)
    except ValueError:
        return None


def _bodies(seen: Any, marker: str) -> Found:
    if not isinstance(seen, dict):
        return "unknown"
    entries = [entry for group in seen.values() if isinstance(group, list) for entry in group]
    posted = any(
        marker in str(entry.get("body", "")) for entry in entries if isinstance(entry, dict)
    )
    return "done" if posted else "not_done"


def _outcome(command: GhCommand, finished: Finished) -> Outcome:
    name = f"gh {command.area} {command.verb}"
    detail: dict[str, Any] = {
        "exit_code": finished.code,
        "stdout": tail(finished.stdout),
        "stderr": tail(finished.stderr),
    }
    if finished.timed_out:
        return Outcome(
            "timeout", f"{name}: no answer in {_TIMEOUT_S:.0f} s.", "transient", detail, True
        )
    if finished.ok:
        where = finished.text.strip().splitlines()[-1:]
        said_where = f": {where[0][:200]}" if where and where[0].startswith("https://") else ""
        return succeeded(f"{name} done{said_where}.", **detail)
    error = finished.error_text
    lower = error.casefold()
    last = finished.reason
    if finished.code == 4 or "gh auth login" in lower:
        return failed("permanent", f"{name}: gh is not logged in. Run `gh auth login`.", **detail)
    if any(words in lower for words in _NOT_SENT):
        return failed("transient", f"{name}: GitHub cannot be reached ({last}).", **detail)
    if any(words in lower for words in _PASSING):
        return failed("transient", f"{name}: {last}", maybe=True, **detail)
    return failed("permanent", f"{name} failed: {last}", **detail)
