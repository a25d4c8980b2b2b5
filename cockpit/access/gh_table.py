"""The closed table of ``gh`` commands: what each takes, and whether it reads or writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

Kind = Literal["value", "list", "bool"]


class Spec(Struct, frozen=True):
    """One command: its access, its positional argument, its flags by long name, and their short forms.

    ``required`` names the positional argument when it must be given.
    """

    access: Literal["read", "write"]
    positional: Literal["none", "number", "tag", "repo", "query", "endpoint"]
    flags: Mapping[str, Kind]
    short: Mapping[str, str]
    required: str = ""

    def kind(self, flag: str) -> Kind | None:
        """Return how ``flag`` takes its value; None when the command has no such flag."""
        return self.flags.get(flag)

    def listed(self) -> str:
        """List the flags for an error message."""
        return ", ".join(f"--{name}" for name in sorted(self.flags) if name != "body-file")


AREAS_REFUSED = {
    "alias": "aliases hide what runs",
    "attestation": "not part of a session's work",
    "auth": "only the user logs in",
    "browse": "it opens a browser",
    "codespace": "not part of a session's work",
    "config": "only the user changes settings",
    "extension": "extensions are third-party programs",
    "gist": "it publishes outside the project",
    "gpg-key": "only the user handles keys",
    "org": "not part of a session's work",
    "project": "not part of a session's work",
    "secret": "only the user handles secrets",
    "ssh-key": "only the user handles keys",
    "variable": "only the user changes the repository's settings",
}
"""Areas of gh that are known and never run, each with the reason."""

_SHORT = {
    "a": "assignee",
    "B": "base",
    "b": "body",
    "F": "body-file",
    "H": "head",
    "h": "help",
    "j": "json",
    "L": "limit",
    "l": "label",
    "m": "milestone",
    "q": "jq",
    "R": "repo",
    "s": "state",
    "S": "search",
    "t": "title",
    "A": "author",
}


def _spec(
    access: Literal["read", "write"],
    positional: Literal["none", "number", "tag", "repo", "query", "endpoint"],
    *,
    values: str = "",
    lists: str = "",
    bools: str = "",
    short: Mapping[str, str] | None = None,
    required: str = "",
) -> Spec:
    flags: dict[str, Kind] = dict.fromkeys(values.split(), "value")
    flags |= dict.fromkeys(lists.split(), "list")
    flags |= dict.fromkeys(bools.split(), "bool")
    if positional not in {"repo", "endpoint"}:
        flags["repo"] = "value"
    shorts = {**_SHORT, **(short or {})}
    return Spec(
        access, positional, flags, {s: n for s, n in shorts.items() if n in flags}, required
    )


_JSON = "json jq template"
_LISTED = f"{_JSON} limit state search author assignee label"
_BODY = "body body-file"
_ITEM_EDIT = "add-label remove-label add-assignee remove-assignee"

COMMANDS: Mapping[tuple[str, str], Spec] = {
    ("pr", "view"): _spec(
        "read", "number", values=_JSON, bools="comments", short={"c": "comments"}
    ),
    ("pr", "diff"): _spec("read", "number", values="color", bools="patch name-only"),
    ("pr", "list"): _spec("read", "none", values=f"{_LISTED} base head", bools="draft"),
    ("pr", "status"): _spec("read", "none", values=_JSON),
    ("pr", "checks"): _spec("read", "number", values=_JSON, bools="required"),
    ("issue", "view"): _spec(
        "read", "number", values=_JSON, bools="comments", short={"c": "comments"}, required="number"
    ),
    ("issue", "list"): _spec("read", "none", values=f"{_LISTED} milestone mention"),
    ("issue", "status"): _spec("read", "none", values=_JSON),
    ("repo", "view"): _spec("read", "repo", values=f"{_JSON} branch", short={"b": "branch"}),
    ("run", "view"): _spec(
        "read",
        "number",
        values=f"{_JSON} attempt job",
        bools="log log-failed verbose exit-status",
        required="number",
    ),
    ("run", "list"): _spec(
        "read", "none", values=f"{_JSON} limit branch workflow status event user"
    ),
    ("workflow", "list"): _spec("read", "none", values=f"{_JSON} limit", bools="all"),
    ("release", "view"): _spec("read", "tag", values=_JSON),
    ("release", "list"): _spec("read", "none", values=f"{_JSON} limit"),
    ("label", "list"): _spec("read", "none", values=f"{_JSON} limit search"),
    ("search", "prs"): _spec("read", "query", values=f"{_JSON} limit state author assignee label"),
    ("search", "issues"): _spec(
        "read", "query", values=f"{_JSON} limit state author assignee label"
    ),
    ("search", "code"): _spec("read", "query", values=f"{_JSON} limit language filename extension"),
    ("search", "commits"): _spec("read", "query", values=f"{_JSON} limit author"),
    ("api", "get"): _spec(
        "read", "endpoint", values="method jq", bools="paginate", short={"X": "method"}
    ),
    ("pr", "review"): _spec(
        "write",
        "number",
        values=_BODY,
        bools="approve request-changes comment",
        short={"a": "approve", "r": "request-changes", "c": "comment"},
        required="number",
    ),
    ("pr", "comment"): _spec("write", "number", values=_BODY, bools="edit-last", required="number"),
    ("pr", "create"): _spec(
        "write",
        "none",
        values=f"{_BODY} title base head milestone",
        lists="label assignee reviewer project",
        bools="draft no-maintainer-edit",
        short={"d": "draft", "r": "reviewer", "p": "project"},
    ),
    ("pr", "edit"): _spec(
        "write",
        "number",
        values=f"{_BODY} title base milestone",
        lists=f"{_ITEM_EDIT} add-reviewer remove-reviewer",
        required="number",
    ),
    ("pr", "merge"): _spec(
        "write",
        "number",
        values=f"{_BODY} subject match-head-commit",
        bools="merge squash rebase delete-branch auto",
        short={"m": "merge", "s": "squash", "r": "rebase", "d": "delete-branch", "t": "subject"},
        required="number",
    ),
    ("pr", "close"): _spec(
        "write",
        "number",
        values="comment",
        bools="delete-branch",
        short={"c": "comment", "d": "delete-branch"},
        required="number",
    ),
    ("pr", "reopen"): _spec(
        "write", "number", values="comment", short={"c": "comment"}, required="number"
    ),
    ("pr", "ready"): _spec("write", "number", bools="undo", required="number"),
    ("issue", "create"): _spec(
        "write",
        "none",
        values=f"{_BODY} title milestone",
        lists="label assignee project",
        short={"p": "project"},
    ),
    ("issue", "comment"): _spec(
        "write", "number", values=_BODY, bools="edit-last", required="number"
    ),
    ("issue", "edit"): _spec(
        "write", "number", values=f"{_BODY} title milestone", lists=_ITEM_EDIT, required="number"
    ),
    ("issue", "close"): _spec(
        "write",
        "number",
        values="comment reason",
        short={"c": "comment", "r": "reason"},
        required="number",
    ),
    ("issue", "reopen"): _spec(
        "write", "number", values="comment", short={"c": "comment"}, required="number"
    ),
}
"""Every command that may run, by area and verb."""
