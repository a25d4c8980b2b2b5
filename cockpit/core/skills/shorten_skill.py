"""The part of a long skill that enters a packet: its start, and the outline of the rest.

See ``docs/reference/skills.md``, in the packet.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from cockpit.core.skills.skill import SKILL_FILE, Skill
from cockpit.core.text import pluralize

ROOM = 4_000
"""Tokens for all skills that are loaded at once."""
LEAST = 300
"""Tokens that a skill gets where others have taken the room."""
_OUTLINE_SHARE = 3
"""The outline takes at most one part in so many."""
_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*")
_FENCES = ("```", "~~~")


class Section(Struct, frozen=True):
    """A section of a skill with those below it; ``first`` and ``last`` are lines of ``SKILL.md``."""

    level: int
    title: str
    first: int
    last: int


def list_sections(skill: Skill) -> tuple[Section, ...]:
    """Return the sections of a skill in their order. Headings in code blocks are none."""
    lines = skill.body.splitlines()
    heads = [
        (len(match[1]), match[2], number)
        for number, line in _outside_code(lines)
        if (match := _HEADING.fullmatch(line.rstrip()))
    ]
    sections = []
    for at, (level, title, number) in enumerate(heads):
        after = (other for upper, _, other in heads[at + 1 :] if upper <= level)
        last = next(after, len(lines))
        first = skill.first_line + number
        sections.append(Section(level, title, first, skill.first_line + last - 1))
    return tuple(sections)


def read_section(skill: Skill, title: str) -> str | None:
    """Return the text of the section with a heading, in any case; None where there is none."""
    wanted = " ".join(title.lstrip("# ").casefold().split())
    for section in list_sections(skill):
        if " ".join(section.title.casefold().split()) == wanted:
            first, last = section.first - skill.first_line, section.last - skill.first_line
            return "\n".join(skill.body.splitlines()[first : last + 1])
    return None


def shorten_skill(skill: Skill, tokens: int, count: Callable[[str], int]) -> str:
    """Return the body where ``count`` says that it fits ``tokens``, else its start and an outline.

    The start ends with a paragraph outside a code block. The outline names each section of the rest by the
    scope item that reads it.
    """
    if count(skill.body) <= tokens:
        return skill.body
    lines = skill.body.splitlines()
    ends = [number for number, line in _outside_code(lines) if number and not line.strip()]

    def write(end: int) -> str:
        return "\n".join([*lines[:end], _outline(skill, end, tokens // _OUTLINE_SHARE, count)])

    fitting = bisect_right(ends, 0, key=lambda end: count(write(end)) > tokens)
    return write(ends[fitting - 1] if fitting else 0)


def _outline(skill: Skill, end: int, tokens: int, count: Callable[[str], int]) -> str:
    """Name the sections below the first ``end`` lines, the smaller ones left out where they are many."""
    total = len(skill.body.splitlines())
    shown = f"lines 1 to {end:,} of {total:,}" if end else f"no line of {total:,}"
    begin, last = skill.first_line + end, skill.first_line + total - 1
    head = f"[shortened by cockpit: {shown}. The rest, on request"
    below = [section for section in list_sections(skill) if section.first >= begin]
    for level in sorted({section.level for section in below}, reverse=True):
        named = [section for section in below if section.level <= level]
        if named[0].first > begin:
            named.insert(0, Section(0, "the rest of the part above", begin, named[0].first - 1))
        text = "\n".join([f"{head}, by item or by heading with get_skill:", *_name(skill, named)])
        if count(text) <= tokens:
            return f"{text}]"
    item = f"skill:{skill.name}/{SKILL_FILE}:{begin}-{last}"
    titles = (
        f"{pluralize(len(below), 'section')}, the last is {below[-1].title[:60]}: " if below else ""
    )
    return f"{head}: {titles}{item}]"


def _name(skill: Skill, sections: Sequence[Section]) -> Iterator[str]:
    for section in sections:
        item = f"skill:{skill.name}/{SKILL_FILE}:{section.first}-{section.last}"
        yield f"{'#' * section.level} {section.title}: {item}".lstrip()


def _outside_code(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines outside code blocks, each with its number from 0."""
    fence = ""
    for number, line in enumerate(lines):
        mark = line.lstrip()[:3]
        if mark in _FENCES and fence in ("", mark):
            fence = "" if fence else mark
        elif not fence:
            yield number, line
