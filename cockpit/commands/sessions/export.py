"""A session as a file to keep or to pass on: Markdown, JSON, or a picture of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from cockpit.commands.sessions.proposal_text import body_lines
from widgets.text.clean import clean

FORMATS = ("md", "json", "svg")
WIDTH = 100
"""Cells of a line of the picture."""

_HTML_OR_IMAGE = re.compile(r"<(?=[A-Za-z/!?])|!(?=\[)")
_TICKS = re.compile(r"`+")
_STYLES = {"you": "bold cyan", "agent": "bold green", "note": "bold"}
_VERDICTS = {"approved": "green", "rejected": "red", "expired": "red"}
# As rich's own, without the fonts that it fetches from the network when the picture is looked at.
_PICTURE = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
    <style>
    .{unique_id}-matrix {{
      font-family: monospace; font-size: {char_height}px; line-height: {line_height}px;
    }}
    .{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
    {styles}
    </style>
    <defs>
    <clipPath id="{unique_id}-clip-terminal">
      <rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
    </clipPath>
    {lines}
    </defs>
    {chrome}
    <g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
    {backgrounds}
    <g class="{unique_id}-matrix">
    {matrix}
    </g>
    </g>
</svg>
"""

Document = Mapping[str, Any]
"""What :func:`cockpit.loop.views.transcript.document` gives."""


def markdown(told: Document) -> str:
    """The session as Markdown, in which nothing that was said can pass for what cockpit says.

    What was said stands in quotes, without HTML and without pictures, which would be fetched when
    somebody looks; what was proposed and what came of it stands in code blocks.
    """
    facts = (told["session_id"], told["task_type"], told["model"], told["status"])
    parts = [
        f"# {_plain(told['title'])}",
        " · ".join(_plain(str(fact)) for fact in (*facts, told["created_at"][:19] + "Z")),
    ]
    for entry in told["entries"]:
        match entry["kind"]:
            case "wave":
                parts.append(f"## {_plain(entry['title'])}")
            case "message":
                parts += [_heading(entry), _quoted(entry.get("text", ""))]
            case "note":
                parts.append(f"*{_plain(entry['title'])}*")
            case _:
                verdict = [_plain(line) for line in _said(entry)]
                parts += [_heading(entry), *verdict, _block("\n".join(_inside(entry)))]
    return "\n\n".join(part for part in parts if part) + "\n"


def picture(told: Document) -> str:
    """The session as an SVG of :data:`WIDTH` cells a line. It fetches nothing and runs nothing."""
    from io import StringIO

    from rich.console import Console
    from rich.text import Text

    console = Console(
        file=StringIO(), record=True, width=WIDTH, color_system="truecolor", force_terminal=True
    )
    for words, style in _lines(told):
        console.print(Text(_drawable(words), style=style), highlight=False, emoji=False)
    return console.export_svg(
        title=_drawable(told["title"]), code_format=_PICTURE, unique_id="session"
    )


def _lines(told: Document) -> Iterator[tuple[str, str]]:
    yield f"{told['session_id']} · {told['task_type']} · {told['model']} · {told['status']}", "dim"
    for entry in told["entries"]:
        kind, title, status = entry["kind"], entry["title"], entry.get("status", "")
        if kind == "wave":
            yield f"\n── {title}", "dim"
        elif kind == "note":
            yield f"  {title}", "dim"
        elif kind == "message":
            yield f"\n{title}{f' ({status})' if status else ''}", _STYLES[title]
            yield entry.get("text", ""), ""
        else:
            yield f"\n{_about(entry)}", "bold yellow" if kind == "proposal" else "bold"
            yield from (("  " + line, _VERDICTS.get(status, "")) for line in _said(entry))
            yield from (("  " + line, "dim") for line in _inside(entry))


def _heading(entry: Mapping[str, Any]) -> str:
    if entry["kind"] == "message":
        status = entry.get("status")
        return f"**{_plain(entry['title'])}**{f' ({status})' if status else ''}"
    return f"### {_plain(_about(entry))}"


def _about(entry: Mapping[str, Any]) -> str:
    if entry["kind"] == "proposal":
        return f"Proposal {entry['proposal_id']}: {entry['title']} ({entry['risk']} risk)"
    return f"Result: {entry['title']} — {entry['status']}"


def _said(entry: Mapping[str, Any]) -> list[str]:
    """The verdict on a proposal, in a line."""
    if entry["kind"] != "proposal":
        return []
    verdict = entry.get("verdict", {})
    line = entry["status"] + (f" by {verdict['by']}" if verdict.get("by") else "")
    if verdict.get("narrowed"):
        line += f", narrowed to {', '.join(map(str, verdict['narrowed']))}"
    return [line + (f": {verdict['words']}" if verdict.get("words") else "")]


def _inside(entry: Mapping[str, Any]) -> list[str]:
    if entry["kind"] == "proposal":
        return (
            "\n".join(body_lines(entry["proposal_kind"], entry.get("body", {})))
            .strip("\n")
            .split("\n")
        )
    return [line for line in (entry.get("text", ""),) if line]


def _plain(text: str) -> str:
    """Words on one line in which Markdown finds nothing."""
    return re.sub(r"([\\`*_\[\]<>#+!|~&])", r"\\\1", clean(text, newlines=False).strip())


def _quoted(text: str) -> str:
    """Markdown of somebody else's as a quote. Outside code blocks nothing of it is HTML or a picture."""
    from markdown_it import MarkdownIt

    lines = clean(text).split("\n")
    # Without HTML in it, as it will be read: what follows a tag can be code to one and HTML to the other.
    tokens = MarkdownIt("commonmark").disable("html_block").parse("\n".join(lines))
    blocks = (each.map for each in tokens if each.type in ("fence", "code_block") and each.map)
    code = {number for first, end in blocks for number in range(first, end)}
    return "\n".join(
        f"> {line if number in code else _HTML_OR_IMAGE.sub(_named, line)}".rstrip()
        for number, line in enumerate(lines)
    )


def _named(found: re.Match[str]) -> str:
    return "&lt;" if found[0] == "<" else "&#33;"


def _block(text: str) -> str:
    """A code block, fenced with more ticks than there are in a row inside."""
    said = clean(text)
    if not said.strip():
        return ""
    ticks = "`" * max(3, 1 + max((len(run) for run in _TICKS.findall(said)), default=0))
    return f"{ticks}text\n{said}\n{ticks}"


def _drawable(text: str) -> str:
    """What XML can hold of a text that is safe to show."""
    return clean(text).translate({0xFFFE: 0xFFFD, 0xFFFF: 0xFFFD})
