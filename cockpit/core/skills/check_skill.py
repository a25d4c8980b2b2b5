"""Check a skill as its author would want to know: what is refused, cut, missing or odd.

See ``docs/reference/skills.md``, checks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from cockpit.core.skills.read_skill import LARGEST_FILE
from cockpit.core.skills.skill import CORE_CHARACTERS, CORE_LINES, QUICK_FILE, QUICK_LINES, Skill

_FILE = re.compile(
    r"(?<![\w/.:-])((?:\./)?(?:references?|scripts|assets|docs)/[\w./-]*\w)(?![\w./-]*[<{*$\[])"
)
_MAKES = re.compile(
    r"(?:\b(?:creat|writ|sav|generat|produc|export|stor|append|record|scaffold|add|output|touch|mkdir)"
    r"\w{0,3}\b(?:(?!\b(?:with|using|from|by|via|see|read|run|python3?|bash|sh|node)\b).)*"
    r"|\b(?:cp|mv|copy|move|rename)\b.*(?:\bto\b|\s\S+)\s*"
    r"|>\s*|(?:-o|--out(?:put)?)[\s=]+|[├└│].*)[`'\"(]*\Z",
    re.IGNORECASE,
)
"""What stands before the name of a file that the skill's work makes, or in a drawing of a layout."""
_LINK = re.compile(r"\]\(([^)\s#]++)(?:#[^)\s]*+)?\)")
_SHORTEST_DESCRIPTION = 40
_USE = re.compile(r"\b(?:use|when|if|for|whenever)\b", re.IGNORECASE)
_ORDERS = re.compile(
    r"\b(?:ignore|disregard|forget)\s+(?:all\s+|any\s+)?(?:your|the|previous|prior|above)\s+"
    r"(?:\w+\s+)?(?:rules?|instructions?|guidelines)|\bapprove\s+(?:everything|all|any)\b"
    r"|\bwithout\s+(?:asking|telling)\s+(?:the\s+)?user\b",
    re.IGNORECASE,
)


class Finding(Struct, frozen=True):
    """One remark about a skill."""

    is_error: bool
    text: str


def check_skill(skill: Skill, *, is_ours: bool) -> tuple[Finding, ...]:
    """Return what is wrong with a skill; ``is_ours``: it was written for cockpit, so its core must be short.

    Reads whether the files exist that it names.
    """
    findings = [Finding(False, remark) for remark in skill.remarks]
    if skill.is_long:
        size = (
            f"{skill.lines} lines"
            if skill.lines > CORE_LINES
            else f"{len(skill.body):,} characters"
        )
        most = CORE_LINES if skill.lines > CORE_LINES else CORE_CHARACTERS
        findings.append(
            Finding(
                is_ours,
                f"The core has {size}; at most {most:,} are best. Move the rest to references/ and name it.",
            )
        )
    if not skill.body.strip():
        findings.append(
            Finding(True, "The body is empty: a skill without instructions does nothing.")
        )
    if len(skill.description) < _SHORTEST_DESCRIPTION or not _USE.search(skill.description):
        findings.append(
            Finding(False, "The description should say what the skill does and when to use it.")
        )
    quick = skill.folder / QUICK_FILE
    if QUICK_FILE in skill.files and len(quick.read_bytes().splitlines()) > QUICK_LINES:
        findings.append(Finding(is_ours, f"{QUICK_FILE} has more than {QUICK_LINES} lines."))
    findings += [Finding(True, text) for text in _find_missing(skill)]
    if order := _ORDERS.search(f"{skill.description}\n{skill.body}"):
        findings.append(
            Finding(
                False, f"It says {order[0]!r}. Skills are data: nothing follows from such words."
            )
        )
    return tuple(sorted(findings, key=lambda finding: not finding.is_error))


def _find_missing(skill: Skill) -> Sequence[str]:
    """Return a sentence for each file that the body names and that cannot be read on request."""
    # Up to the last bracket that closes: each that opens before it is closed.
    words = [word[: word.rfind(")") + 1] for word in skill.body.split()]
    links = [path for word in words for path in _LINK.findall(word) if ":" not in path]
    named = dict.fromkeys([*_FILE.findall(skill.body), *links])
    outputs = {path for path in named if _is_made(skill.body, path)}
    texts = []
    root = skill.folder.resolve()
    for path in named:
        target = Path(root, path)
        try:
            real = target.resolve()
            is_inside = real == root or root in real.parents
            if not is_inside:
                texts.append(f"{path} leads out of the skill's folder and is never read.")
            elif path in outputs and not real.exists():
                continue
            elif not real.exists():
                texts.append(f"{path} is named and does not exist.")
            elif real.is_file() and real.stat().st_size > LARGEST_FILE:
                texts.append(f"{path} is larger than {LARGEST_FILE:,} bytes: ask for lines of it.")
        except (OSError, ValueError) as error:
            texts.append(f"{path} cannot be read: {error}.")
    return texts


def _is_made(body: str, path: str) -> bool:
    """Whether the body says anywhere that its work makes the file: it is none of the skill's folder."""
    for line in body.splitlines():
        before, named, _ = line.partition(path)
        if named and _MAKES.search(re.split(r"[.;!?]\s", before)[-1][-400:]):
            return True
    return False
