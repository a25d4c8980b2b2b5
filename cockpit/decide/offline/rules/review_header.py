"""The head of the opening message: who asks for the review of what."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from cockpit.core.fenced_text import unfence_text, unspan
from cockpit.decide.model import PacketFact

_FIELD = re.compile(r"^\*\*(Title|Author):\*\* (.*)$", re.MULTILINE)
_LINKED = re.compile(r"^- (#\d+): (.*) \(\S+\)$", re.MULTILINE)
_MENTION = re.compile(r"(?<![\w`])(@[\w/-]+)")


class Frame(Struct, frozen=True):
    """``subject`` is ``PR #24`` or the range, ``title`` its title or the subject; ``about`` the first
    sentence of the description; ``linked`` the issues that it closes, each with its title."""

    subject: str
    title: str
    author: str
    about: str
    linked: str


def frame_of(facts: Sequence[PacketFact]) -> Frame:
    """Return the frame that the opening message among ``facts`` states; missing fields are empty."""
    opening = "\n".join(fact.text for fact in facts if fact.source_type == "task")
    head = opening.partition("\n**Files Changed:**\n")[0]
    fields = {name: quiet(unspan(value)) for name, value in reversed(_FIELD.findall(head))}
    body, _, linked = head.partition("\n**Body:**\n")[2].rpartition("\n\n**Linked Issues:**\n")
    match = re.match(r"## Task: Review (.+)", opening)
    subject = match[1] if match else "this change"
    return Frame(
        subject=subject,
        title=f"“{fields['Title']}”" if fields.get("Title") else subject,
        author=fields.get("Author", ""),
        about=quiet(_first_sentence(unfence_text(body))),
        linked=", ".join(f"{at} ({quiet(unspan(title))})" for at, title in _LINKED.findall(linked)),
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
