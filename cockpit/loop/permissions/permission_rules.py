"""The user's trust rules: what an external agent may do from now on without asking.

A rule names one agent, one project and exactly one command, file, server's tool or address. Rules are in
``permissions.toml`` of the user's configuration, where they can be read and removed. See
``docs/reference/agents.md``, permissions.
"""

from __future__ import annotations

import json
import os
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from cockpit.core.canonical_json import digest
from cockpit.core.errors import CockpitError, NotFound
from cockpit.core.find_checkout import find_checkout
from cockpit.loop.permissions.judge_tool import ToolRisk, locate_path
from cockpit.loop.permissions.tool_names import join_words
from cockpit.loop.permissions.tool_request import ToolRequest
from cockpit.store.trust.shape import Shape

FILE = "permissions.toml"
_LARGEST = 1_000_000
_MOST = 2_000
_LONGEST = 2_000
_HEAD = "# What external agents may do without asking you. Remove an entry, and they ask again.\n"
_NAMES = ("agent", "project", "kind", "what")


class RuleRefused(CockpitError):
    """The request cannot become a rule, or the rules cannot be read; the message says why."""

    code = "trust_rule"


class TrustRule(Struct, frozen=True):
    """One thing that one agent may do in one project."""

    agent: str
    project: str
    """The main checkout's folder."""
    kind: str
    """``execute``, ``edit``, ``mcp`` or ``fetch``."""
    what: str
    """The whole command, the file from the project's top, the server's tool, or the address."""

    def as_shape(self) -> Shape:
        """Return the rule as the shape of exactly one request, in sessions of any task type."""
        return Shape(self.agent, "", self.kind, (self.what,))

    @property
    def rule_id(self) -> str:
        return f"r-{digest([self.agent, self.project, self.kind, self.what])[:8]}"


def propose_rule(request: ToolRequest, judged: ToolRisk, root: Path) -> TrustRule | None:
    """Return the rule that would allow exactly ``request`` from now on; None where none may.

    Nothing becomes a rule that names secrets, settings of agents, places outside the project or files that
    steer what runs, nor what cannot be judged, nor a question to the user.
    """
    if judged.denied or judged.sensitive:
        return None
    what = _what(request, root)
    if not what or len(what) > _LONGEST or not what.isprintable() or "[masked:" in what:
        return None
    checkout = find_checkout(str(root))
    return TrustRule(request.agent, checkout.home if checkout else str(root), request.kind, what)


def _what(request: ToolRequest, root: Path) -> str:
    if request.kind == "execute":
        # In another folder the same words are another command.
        inside = not request.cwd or Path(request.cwd) == root
        return (request.command or join_words(list(request.argv))) if inside else ""
    if request.kind == "edit" and len(set(request.paths)) == 1:
        return locate_path(request.paths[0], root=str(root), cwd=request.cwd)
    if request.kind == "mcp":
        return request.tool
    if request.kind == "fetch":
        url = request.input.get("url")
        return url if isinstance(url, str) else ""
    return ""


def load_rules(user_dir: Path) -> tuple[TrustRule, ...]:
    """Load the rules in the user's configuration folder; none without a folder or file.

    Raises :class:`RuleRefused` for a file that cannot be read: then nothing is allowed by it.
    """
    path = user_dir / FILE
    if user_dir == Path() or not path.is_file():
        return ()
    try:
        with open(path, "rb") as file:
            entries = tomllib.loads(file.read(_LARGEST).decode("utf-8")).get("allow", [])
    except (OSError, ValueError) as error:
        raise RuleRefused(f"{path} cannot be read: {error}. No rule in it counts.") from error
    rules = []
    for entry in entries[:_MOST] if isinstance(entries, list) else ():
        values = [entry.get(name, "") for name in _NAMES] if isinstance(entry, dict) else []
        texts = [value for value in values if isinstance(value, str) and value]
        if len(texts) == len(_NAMES):
            rules.append(TrustRule(*texts))
    return tuple(dict.fromkeys(rules))


def find_rule(rule: TrustRule | None, user_dir: Path) -> str:
    """Return the name of the user's rule that allows what ``rule`` says; '' without one."""
    if rule is None:
        return ""
    try:
        rules = load_rules(user_dir)
    except RuleRefused:
        return ""  # `cockpit trust rules` says why; meanwhile the user is asked
    return f"trust:{rule.rule_id}" if rule in rules else ""


def read_rule(body: Mapping[str, Any]) -> TrustRule:
    """Return the rule that a permission's ``body`` offers. Raises :class:`RuleRefused`."""
    offered = body.get("rule")
    if not isinstance(offered, Mapping):
        raise RuleRefused(
            "This cannot be allowed from now on: it is too wide, names what is never trusted, or cannot be"
            " judged. Approve it once instead."
        )
    return TrustRule(*(str(offered.get(name, "")) for name in _NAMES))


def add_rule(user_dir: Path, rule: TrustRule) -> None:
    """Add a rule to the user's file. Raises :class:`RuleRefused`, and then nothing was written."""
    rules = load_rules(user_dir)
    if user_dir == Path():
        raise RuleRefused("There is no configuration folder for rules.")
    if rule not in rules:
        _write(user_dir, (*rules, rule))


def remove_rule(user_dir: Path, rule_id: str) -> TrustRule:
    """Remove a rule by its id. Raises ``NotFound``, and :class:`RuleRefused`."""
    rules = load_rules(user_dir)
    for rule in rules:
        if rule.rule_id == rule_id:
            _write(user_dir, tuple(each for each in rules if each != rule))
            return rule
    raise NotFound(f"There is no rule {rule_id}; `cockpit trust rules` lists them.")


def _write(user_dir: Path, rules: tuple[TrustRule, ...]) -> None:
    entries = [
        "\n[[allow]]\n"
        + "".join(f"{name} = {json.dumps(getattr(rule, name))}\n" for name in _NAMES)
        for rule in rules
    ]
    try:
        user_dir.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{FILE}-", dir=user_dir)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(_HEAD + "".join(entries))
        Path(name).replace(user_dir / FILE)
    except OSError as error:
        raise RuleRefused(f"{user_dir / FILE} cannot be written: {error}.") from error
