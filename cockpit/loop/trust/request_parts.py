"""The parts of a proposal, each with its shape: items to read one by one, an action or permission as a whole.

Learning and coverage read the shapes from the stored proposal by this one function, so that what is learned
is exactly what is covered. What is not understood has no shape. See ``docs/reference/trust.md``, shapes.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from cockpit.access.gh_command import parse_gh
from cockpit.access.gh_flags import GhRefused
from cockpit.core.canonical_json import digest
from cockpit.core.secrets import mask_value
from cockpit.learn.trust.command_shape import checks_files, command_shape
from cockpit.learn.trust.path_shape import folder_pattern, is_plain_path, is_plain_text
from cockpit.observe.scope_items import ScopeItem, ScopeRefused, parse_item
from cockpit.store.sessions.proposals import Proposal
from cockpit.store.sessions.sessions import Session
from cockpit.store.trust.shape import CONTEXT, OWN, Shape

KINDS = ("context", "action", "permission")
"""Proposals that rules are learned from."""
MOST_PARTS = 50
_LONGEST = 400
_CARDS = (("pr", "review"), ("pr", "comment"), ("issue", "comment"))
"""Posts to GitHub that may get a short card: they say something, and change nothing else."""


class AskedProposal(Struct, frozen=True):
    """A proposal that is about to be stored."""

    kind: str
    proposal_id: str
    session_id: str
    wave_id: str
    title: str
    body: Mapping[str, Any]
    risk: str
    revises: str | None = None


Asked = Proposal | AskedProposal
"""What is asked, stored or about to be."""


class RequestPart(Struct, frozen=True):
    """One part of a proposal."""

    text: str
    """The part in words."""
    shape: Shape | None
    """None for what no rule may cover."""
    paths: tuple[str, ...] = ()
    """Files that its shape has a folder for, from the project's root."""

    @property
    def literal(self) -> str:
        return digest(self.text)


def list_parts(proposal: Asked, session: Session) -> tuple[RequestPart, ...]:
    """Return the parts of a proposal of ``session``; nothing for a kind that is not learned from."""
    body = proposal.body
    if proposal.kind == "context":
        return _context_parts(body, session)
    if proposal.kind == "permission":
        words = body.get("shape")
        is_known = isinstance(words, list | tuple) and bool(words)
        shape = (
            _shape(
                session,
                str(body.get("type")),
                [str(word) for word in words or ()],
                body.get("agent", ""),
            )
            if is_known
            else None
        )
        paths = tuple(str(path) for path in body.get("shape_paths", ()))
        return (RequestPart(proposal.title, shape, paths),)
    if proposal.kind != "action" or not proposal.wave_id or "key" not in body:
        return ()
    kind, payload = str(body.get("type", "")), body.get("payload", {})
    try:
        words, paths = _action_words(kind, payload, body, session)
    except (KeyError, TypeError, ValueError):  # of another version of cockpit
        words, paths = None, ()
    return (RequestPart(proposal.title, _shape(session, kind, words), paths),)


def find_linked_path(root: str, paths: Sequence[str]) -> str:
    """Return the first of ``paths`` that is reached through a symbolic link below ``root``; '' if none is."""
    top = os.path.realpath(root)
    for path in paths:
        whole = f"{top}/{path}"
        try:
            if os.path.realpath(whole) != whole:
                return path
        except (OSError, ValueError):
            return path
    return ""


def _shape(
    session: Session, kind: str, words: Sequence[str] | None, asker: str = ""
) -> Shape | None:
    """Return the shape; None without words, or where they are not plain or look like a secret."""
    if not words or sum(map(len, words)) > _LONGEST or not session.task_type:
        return None
    if not all(is_plain_text(word) and "[masked:" not in word for word in words):
        return None
    if mask_value(list(words)) != list(words):
        return None
    return Shape(str(asker), session.task_type, kind, tuple(words))


def _context_parts(body: Mapping[str, Any], session: Session) -> tuple[RequestPart, ...]:
    items = [item for item in body.get("items", ()) if not item.get("refused")]
    if len(items) > MOST_PARTS:
        return (RequestPart(f"{len(items)} items", None),)
    parts = []
    for each in items:
        text = str(each["item"])
        try:
            item = parse_item(text)
        except ScopeRefused:
            parts.append(RequestPart(text, None))
            continue
        words = _item_words(item, session)
        if words and item.level != "full":
            words = [*words, f"@{item.level}"]
        paths = (item.ref,) if item.kind == "file" and words and words[0] != "files" else ()
        parts.append(RequestPart(text, _shape(session, CONTEXT, words), paths))
    return tuple(parts)


def _item_words(item: ScopeItem, session: Session) -> list[str] | None:
    """Return source and place of an item. A source that is not named here is covered to the letter only."""
    match item.kind:
        case "file":
            if "*" in item.ref or "?" in item.ref:
                return ["files", item.ref] if _is_plain_glob(item.ref) else None
            pattern = folder_pattern(item.ref)
            source = "file" if item.lines is None else "lines of"
            return [source, pattern] if pattern else None
        case "search" if item.glob is not None:
            return ["search in", item.glob] if _is_plain_glob(item.glob) else None
        case "diff" | "log" | "pr":
            place = OWN if item.ref in _own_objects(item.kind, session) else item.ref
            glob = ["in", item.glob] if item.glob is not None else []
            return [item.kind, place, *glob]
        case "issue" if item.ref == str(session.target.get("issue", "")):
            return ["issue", OWN]
        case "handoff" | "wip" if item.ref == session.task_id:
            return [item.kind, OWN]
        case "receipt":
            return ["receipt"]  # of this session's own calls
        case "docs" | "note":
            return [item.kind, "(any words)"]
        case "skill":
            return ["skill", item.ref.partition("/")[0]]
        case "gh":
            words = shlex.split(item.ref)
            own = str(session.target.get("pr", ""))
            # `gh pr view 24`: only there a number is the pull request's, and not that of `--limit 24`.
            if own and words[:1] == ["pr"] and words[2:3] == [own]:
                words[2] = OWN
            return ["gh", *words]
        case _:
            return [item.kind, item.ref]


def _own_objects(kind: str, session: Session) -> tuple[str, ...]:
    """Return how the task's own pull request or range may be written."""
    target = session.target
    if kind == "pr":
        return (str(target["pr"]),) if "pr" in target else ()
    written = [str(target["range"])] if "range" in target else []
    if "base" in target and "tip" in target:
        written += [f"{target['base']}{dots}{target['tip']}" for dots in ("..", "...")]
    return tuple(written)


def _is_plain_glob(glob: str) -> bool:
    return is_plain_path(glob.replace("*", "x").replace("?", "x"))


def _action_words(
    kind: str, payload: Mapping[str, Any], body: Mapping[str, Any], session: Session
) -> tuple[list[str] | None, tuple[str, ...]]:
    """Return the words of an action, and the files that they have folders for."""
    match kind:
        case "run":
            return _run_words(payload)
        case "write_file" | "edit_file":
            pattern = folder_pattern(str(payload["path"]))
            is_new = any(diff["before"] is None for diff in body.get("diffs", ()))
            words = ["new" if is_new else "existing", pattern]
            return (words, (str(payload["path"]),)) if pattern else (None, ())
        case "git_commit":
            paths = tuple(str(file["path"]) for file in payload["files"])
            patterns = [folder_pattern(path) for path in paths]
            hooks = [f"hooks {digest(payload['hooks'])[:12]}"] if payload.get("hooks") else []
            words = [f"on {payload['branch']}", *sorted(set(patterns)), *hooks]
            return (words, paths) if all(patterns) and payload["branch"] else (None, ())
        case "github":
            return _card_words(payload, session), ()
        case _:
            return None, ()


def _run_words(payload: Mapping[str, Any]) -> tuple[list[str] | None, tuple[str, ...]]:
    argv = [str(word) for word in payload["argv"]]
    described = command_shape(argv)
    if described is None:
        return None, ()
    words, paths = list(described[0]), described[1]
    if not payload.get("sandboxed"):
        words.append("(not sandboxed)")
    if payload.get("reading"):
        words.append("(changes nothing)")
    # Another content of a script is another command. What a checker loads changes with the work.
    if payload.get("scripts") and not checks_files(argv):
        words.append(f"(scripts {digest(payload['scripts'])[:12]})")
    return words, paths


def _card_words(payload: Mapping[str, Any], session: Session) -> list[str] | None:
    """Return the words of a post about the task's own pull request or issue; None for any other."""
    if payload.get("push"):
        return None
    try:
        command = parse_gh([str(word) for word in payload["argv"]][1:])
    except GhRefused:
        return None
    own = session.target.get("pr" if command.area == "pr" else "issue")
    if (command.area, command.verb) not in _CARDS or own is None or command.number != own:
        return None
    flags = [
        f"--{name}" if value == "yes" else f"--{name}={value}" for name, value in command.fields
    ]
    body = [] if command.body is None else ["--body"]
    return ["gh", command.area, command.verb, OWN, *sorted(flags), *body]
