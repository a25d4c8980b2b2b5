"""The proposal of a permission as it is stored and shown: masked and bounded.

The agent's own input is in it masked, so that the user can change it; the unmasked one stays with the
process that waits. See ``docs/reference/agents.md``, permissions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cockpit.access.git_folders import locate_git_folders, read_head
from cockpit.core.canonical_json import canonical_json
from cockpit.core.fenced_text import fence_text
from cockpit.core.find_checkout import find_checkout
from cockpit.core.processes import current_process
from cockpit.core.secrets import mask, mask_value
from cockpit.core.text import pluralize
from cockpit.loop.permissions.complete_edits import CompleteEdits, complete_edits
from cockpit.loop.permissions.judge_request import is_too_deep, judge_request
from cockpit.loop.permissions.judge_tool import ToolRisk
from cockpit.loop.permissions.permission_rules import TrustRule, propose_rule
from cockpit.loop.permissions.question_form import describe_questions
from cockpit.loop.permissions.tool_names import join_words
from cockpit.loop.permissions.tool_request import ToolRequest
from cockpit.loop.trust.permission_shape import describe_shape

MAX_TITLE = 200
MAX_FIELD = 20_000
"""Characters of one field; a command is shown whole up to here, and judged whole.

A request of which more is hidden is of high risk.
"""
MAX_INPUT = 400_000
"""Characters of an input that can be changed before it is approved."""
MAX_OPTIONS = 20
_MOST_ARGUMENTS = 40
_MOST_PATHS = 100
_TOO_DEEP = "(nested too deep to be shown)"
_TEXT_ARGUMENTS = {"Write": "content", "Edit": "new_string", "NotebookEdit": "new_source"}
_SHELL_ARGUMENTS = ("command", "cmd")


class PermissionProposal(Struct, frozen=True):
    """What is stored for one request, and what was found out for it."""

    title: str
    body: Mapping[str, Any]
    judged: ToolRisk
    edits: CompleteEdits
    rule: TrustRule | None = None
    """The rule that would allow exactly this from now on."""


class AgentPlace(Struct, frozen=True):
    """Where the agent works."""

    root: Path
    """The worktree's top."""
    project: str
    branch: str


def find_place(root: Path) -> AgentPlace:
    """Read the project's name and the branch of the worktree ``root`` from its files. Blocks."""
    checkout = find_checkout(str(root))
    project = Path(checkout.home).name if checkout else root.name
    folders = locate_git_folders(root)
    head = read_head(folders) if folders else None
    return AgentPlace(root, project, (head or "").removeprefix("refs/heads/")[:200])


def describe_request(
    request: ToolRequest, place: AgentPlace, *, changes: Sequence[str] = (), waiter: str = ""
) -> PermissionProposal:
    """Judge ``request`` and return what its proposal shows. Blocks: it reads files of the project.

    ``changes`` say how it differs from the revision before, ``waiter`` is the process that waits for the
    answer: this one if it is empty.
    """
    judged = judge_request(request, place.root)
    if is_too_deep(request.input):
        # Whatever walks through it would end in the middle; what it names is judged and shown.
        request = replace(request, input={"input": _TOO_DEEP}, editable=False)
    edits = complete_edits(request, place.root)
    line = request.command or join_words(list(request.argv))
    fields = [(name, mask(value)) for name, value in _fields(request, place, line)]
    judged = _judge_unshown(judged, request, fields, edits)
    risk = [f"Risk: {'; '.join(judged.reasons)}."] if judged.reasons else []
    sources = [*risk, *edits.notes]
    if request.kind in ("edit", "move", "delete") and not request.edits:
        sources.append(
            "The agent did not send the change itself: what it would write is not known."
        )
    if request.questions and not request.form:
        sources.append(
            "Its protocol takes no answers from here. Answer in the agent's own terminal, or say no with your"
            " answer as the reason: the agent reads it."
        )
    if request.tool == "elicitation" and "address" in request.input:
        sources.append("cockpit opens nothing. Open the address yourself, then approve.")
    body: dict[str, Any] = {
        "type": request.kind,
        "agent": request.agent,
        "transport": request.transport,
        "project": place.project,
        "branch": place.branch,
        "worktree": str(place.root),
        "confined": request.confined,
        "cwd": request.cwd,
        "call_id": request.call_id[:MAX_TITLE],
        "tool": request.tool[:MAX_TITLE],
        "server": request.server[:MAX_TITLE],
        "why": _cut(request.why, MAX_FIELD),
        "command": _cut(line, MAX_FIELD),
        "reasons": list(judged.reasons),
        "options": [_cut(option.name, MAX_TITLE) for option in request.options[:MAX_OPTIONS]],
        "fields": [[name, _shorten(value, MAX_FIELD)] for name, value in fields],
        "body": _plan_text(request),
        "diffs": [
            {"path": diff.path, "before": diff.before, "after": diff.after} for diff in edits.diffs
        ],
        "notes": [_cut(note, MAX_FIELD) for note in dict.fromkeys(sources)],
        "changes": list(changes),
        "waiter": waiter or current_process(),
        **_editable(request),
        **_questions(request),
    }
    if (described := describe_shape(request, judged, place.root)) is not None:
        body["shape"], body["shape_paths"] = map(list, described)
    rule = propose_rule(request, judged, place.root)
    if rule is not None:
        names = ("agent", "project", "kind", "what")
        body["rule"] = {name: getattr(rule, name) for name in names}
    if mask_value(body.get("rule")) != body.get("rule"):
        del body["rule"]  # a rule is compared with what the agent sends: it cannot be masked
        rule = None
    return PermissionProposal(_title(request, edits), mask_value(body), judged, edits, rule)


def _title(request: ToolRequest, edits: CompleteEdits) -> str:
    title = " ".join(request.title.split())
    if request.kind == "mcp" and request.server:
        title = f"{request.server}: {title}"
    if edits.diffs and request.kind == "edit":
        names = ", ".join(diff.path for diff in edits.diffs[:3])
        more = len(edits.diffs) - 3
        verb = "create" if all(diff.before is None for diff in edits.diffs) else "edit"
        title = f"{verb} {names}" + (f" and {pluralize(more, 'more file')}" if more > 0 else "")
    # A path may have line ends, too: a title stays the one line that lists and stories show.
    return _cut(" ".join((title or request.tool or "use a tool").split()), MAX_TITLE)


def _fields(request: ToolRequest, place: AgentPlace, line: str) -> list[tuple[str, str]]:
    """Return names and values to show, those that decide first."""
    fields = describe_questions([question.record() for question in request.questions])
    if line:
        fields.append(("command", line))
    if request.server:
        fields += [("server", request.server), ("tool", request.tool.rpartition("__")[2])]
    elif request.kind in ("other", "fetch", "think", "search"):
        fields.append(("tool", request.tool))
    shown = {"command", "cmd", "description", "workdir", "cwd"}
    if request.kind in ("mcp", "other", "fetch", "search", "read", "think") and not line:
        # Masked as a whole first: a value's name may say that it is a secret.
        arguments = mask_value(dict(request.input))
        for name, value in list(arguments.items())[:_MOST_ARGUMENTS]:
            if name == "questions" and request.questions:
                continue
            if name not in shown and not (name == "plan" and request.kind == "think"):
                fields.append((name, value if isinstance(value, str) else _json(value)))
        if (more := len(request.input) - _MOST_ARGUMENTS) > 0:
            fields.append(("…", f"{more} more arguments are not shown"))
    if request.paths and not request.edits and request.kind != "read":
        fields.append(("paths", "\n".join(request.paths[:_MOST_PATHS])))
    if request.cwd and Path(request.cwd) != place.root:
        fields.append(("folder", request.cwd))
    if request.why:
        fields.append(("why", request.why))
    fields.append(("worktree", f"{place.root} · asked over {request.transport}"))
    if request.options:
        names = ", ".join(option.name for option in request.options[:MAX_OPTIONS])
        fields.append(("its options", names))
    return fields


def _plan_text(request: ToolRequest) -> str:
    """Return a plan, which is Markdown, or a notebook's cell between fences: both are to be read whole."""
    text = _cut(_plan_source(request), MAX_FIELD)
    if not text.strip():
        return ""
    return text if request.kind == "think" else fence_text(text)


def _plan_source(request: ToolRequest) -> str:
    name = "plan" if request.kind == "think" else "new_source"
    value = request.input.get(name) if request.kind in ("think", "edit") else None
    return value if isinstance(value, str) else ""


def _editable(request: ToolRequest) -> dict[str, Any]:
    """Return the input that the user may change, with the argument that is edited as text.

    An empty ``edit_argument`` stands for the whole input as JSON.
    """
    if not request.editable or request.kind == "think":
        return {"editable": False}
    try:
        text = canonical_json(dict(request.input))
    except (TypeError, ValueError, RecursionError):
        return {"editable": False}
    if len(text) > MAX_INPUT:
        return {"editable": False}
    argument, suffix = "", ".json"
    names = _SHELL_ARGUMENTS if request.kind == "execute" else ()
    for name in (*names, _TEXT_ARGUMENTS.get(request.tool, "")):
        if name and isinstance(request.input.get(name), str):
            argument, suffix = name, ".sh" if name in _SHELL_ARGUMENTS else _suffix(request)
            break
    return {
        "editable": True,
        "edit_argument": argument,
        "edit_suffix": suffix,
        "input": json.loads(text),
    }


def _questions(request: ToolRequest) -> dict[str, Any]:
    """Return the questions as the form draws them, and how their answers go back."""
    if not request.questions:
        return {}
    records = [question.record() for question in request.questions]
    return {"questions": records, "form": request.form}


def _suffix(request: ToolRequest) -> str:
    path = next(iter(request.paths), "")
    suffix = PurePosixPath(path).suffix
    return suffix if suffix.isascii() and suffix[1:].isalnum() and len(suffix) < 12 else ".txt"


def _json(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
        return (
            text if len(text) < 80 else json.dumps(value, ensure_ascii=False, indent=2, default=str)
        )
    except (RecursionError, ValueError):
        return _TOO_DEEP


def _judge_unshown(
    judged: ToolRisk,
    request: ToolRequest,
    fields: Sequence[tuple[str, str]],
    edits: CompleteEdits,
) -> ToolRisk:
    """Return the judgement of a request of which the proposal shows a part: that part can do anything."""
    reasons = [
        f"{len(value) - MAX_FIELD:,} of {len(value):,} characters of its {name} are not shown"
        for name, value in (*fields, ("text", mask(_plan_source(request))))
        if len(value) > MAX_FIELD
    ]
    if not edits.is_whole:
        reasons.append("part of its change is not shown")
    if len(request.input) > _MOST_ARGUMENTS or len(request.paths) > _MOST_PATHS:
        reasons.append("part of its input is not shown")
    if not reasons:
        return judged
    return ToolRisk("high", (*judged.reasons, *reasons), reads=judged.reads, denied=judged.denied)


def _cut(text: str, most: int) -> str:
    """Mask ``text`` and shorten it to ``most`` characters: half of a secret would not be recognised."""
    return _shorten(mask(text), most)


def _shorten(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[: most // 2]} […{len(text) - most} characters…] {text[-(most // 2) :]}"
