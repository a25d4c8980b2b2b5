"""The head of the opening message: who asks for the review of what."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from cockpit.core.fenced_text import unfence_text, unspan
from cockpit.decide.model import PacketFact

_FIELD = re.compile(r"^\*\*(Title|Author|State):\*\* (.*)$", re.MULTILINE)
_LINKED = re.compile(r"^- (#\d+): (.*) \(\S+\)$", re.MULTILINE)
_MENTION = re.compile(r"(?<![\w`])(@[\w/-]+)")


class Frame(Struct, frozen=True):
    """``subject`` is ``PR #24`` or the range; ``about`` the first sentence of the description;
    ``linked`` the issues that it closes, as (reference, title)."""

    subject: str
    title: str
    author: str
    about: str
    linked: tuple[tuple[str, str], ...]


def frame_of(facts: Sequence[PacketFact]) -> Frame:
    """Return the frame that the opening message among ``facts`` states; missing fields are empty."""
    opening = "\n".join(fact.text for fact in facts if fact.source_type == "task")
    head = opening.partition("\n**Files Changed:**\n")[0]
    fields: dict[str, str] = {}
    for name, value in _FIELD.findall(head):
        fields.setdefault(name, unspan(value))
    body = head.partition("\n**Body:**\n")[2].rpartition("\n\n**Linked Issues:**\n")
    subject = re.match(r"## Task: Review (.+)", opening)
    return Frame(
        subject=subject[1] if subject else "this change",
        title=quiet(fields.get("Title", "")),
        author=quiet(fields.get("Author", "")),
        about=quiet(_first_sentence(unfence_text(body[0]))),
        linked=tuple((ref, quiet(unspan(title))) for ref, title in _LINKED.findall(body[2])),
    )


def quiet(text: str) -> str:
    """Quote text of a pull request: its mentions must not notify people."""
    return _MENTION.sub(r"`\1`", text)


def _first_sentence(body: str) -> str:
    for block in body.split("\n\n"):
        line = " ".join(block.split())
        if line and line[0] not in "-*#>|<`[(" and "no description" not in line:
            return re.split(r"(?<=[.!?])\s", line, maxsplit=1)[0][:240]
    return ""
