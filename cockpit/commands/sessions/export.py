"""Export a session as Markdown, JSON or an SVG picture."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from cockpit.commands.sessions.proposal_text import WIDTH as TEXT_WIDTH
from cockpit.commands.sessions.proposal_text import body_lines
from cockpit.loop.views.quoted_text import bar_text, cut_columns
from widgets.text.clean import clean

FORMATS = ("md", "json", "svg")
WIDTH = 100
"""Columns of the picture."""

_HTML_OR_IMAGE = re.compile(r"<(?=[A-Za-z/!?])|!(?=\[)")
_TICKS = re.compile(r"`+")
_STYLES = {"you": "bold cyan", "agent": "bold green", "note": "bold"}
_VERDICTS = {"approved": "green", "rejected": "red", "expired": "red", "withdrawn": "red"}
# rich's template, without the fonts that a viewer would load from the network.
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
"""The transcript that :func:`cockpit.loop.views.transcript.document` returns."""


def markdown(transcript: Document) -> str:
    """Return the session as Markdown, in which no message can pass for text of cockpit.

    Messages are quoted, without HTML and without pictures, which a viewer would load. Proposals and
    results are code blocks.
    """
    facts = (
        transcript["session_id"],
        transcript["task_type"],
        transcript["model"],
        transcript["status"],
    )
    parts = [
        f"# {_plain(transcript['title'])}",
        " · ".join(_plain(str(fact)) for fact in (*facts, transcript["created_at"][:19] + "Z")),
    ]
    for entry in transcript["entries"]:
        match entry["kind"]:
            case "wave":
                parts.append(f"## {_plain(entry['title'])}")
            case "message":
                parts += [_heading(entry), _quoted(entry.get("text", ""))]
            case "note":
                parts.append(f"*{_plain(entry['title'])}*")
            case _:
                verdict = [_plain(line) for line in _verdict(entry)]
                parts += [_heading(entry), *verdict, _block("\n".join(_details(entry)))]
    return "\n\n".join(part for part in parts if part) + "\n"


def picture(transcript: Document) -> str:
    """Return the session as an SVG of :data:`WIDTH` columns. It loads nothing and runs nothing."""
    from io import StringIO

    from rich.console import Console
    from rich.text import Text

    console = Console(
        file=StringIO(), record=True, width=WIDTH, color_system="truecolor", force_terminal=True
    )
    for text, style in _lines(transcript):
        console.print(Text(_drawable(text), style=style), highlight=False, emoji=False)
    return console.export_svg(
        title=_drawable(transcript["title"]), code_format=_PICTURE, unique_id="session"
    )


def _lines(transcript: Document) -> Iterator[tuple[str, str]]:
    names = ("session_id", "task_type", "model", "status")
    yield " · ".join(transcript[name] for name in names), "dim"
    for entry in transcript["entries"]:
        kind, title, status = entry["kind"], entry["title"], entry.get("status", "")
        if kind == "wave":
            yield f"\n── {title}", "dim"
        elif kind == "note":
            yield _hang(f"  {title}"), "dim"
        elif kind == "message":
            yield f"\n{title}{f' ({status})' if status else ''}", _STYLES[title]
            # Behind a bar: no line of it passes for one of cockpit's own.
            yield bar_text(clean(entry.get("text", "")), WIDTH), ""
        else:
            yield f"\n{_hang(_title(entry))}", "bold yellow" if kind == "proposal" else "bold"
            for line in _verdict(entry):
                yield _hang(f"  {line}"), _VERDICTS.get(status, "")
            if kind == "proposal":
                details = _details(entry, WIDTH - 2)
                yield from (("  " + line, "dim") for line in details)
            else:
                yield bar_text(clean(entry.get("text", "")), WIDTH, indent="  "), "dim"


def _hang(text: str) -> str:
    """Return text whose lines are cut to the picture's columns: the rest of one hangs behind a sign."""
    lines = (cut_columns(line, WIDTH - 4) for line in clean(text).split("\n"))
    return "\n".join("\n  ┆ ".join(pieces) for pieces in lines)


def _heading(entry: Mapping[str, Any]) -> str:
    if entry["kind"] == "message":
        status = entry.get("status")
        return f"**{_plain(entry['title'])}**{f' ({status})' if status else ''}"
    return f"### {_plain(_title(entry))}"


def _title(entry: Mapping[str, Any]) -> str:
    if entry["kind"] == "proposal":
        return f"Proposal {entry['proposal_id']}: {entry['title']} ({entry['risk']} risk)"
    return f"Result: {entry['title']} — {entry['status']}"


def _verdict(entry: Mapping[str, Any]) -> list[str]:
    """Return the decision on a proposal as a list of one line; empty for other entries."""
    if entry["kind"] != "proposal":
        return []
    verdict = entry.get("verdict", {})
    line = entry["status"] + (f" by {verdict['by']}" if verdict.get("by") else "")
    if verdict.get("narrowed"):
        line += f", narrowed to {', '.join(map(str, verdict['narrowed']))}"
    return [line + (f": {verdict['words']}" if verdict.get("words") else "")]


def _details(entry: Mapping[str, Any], width: int = TEXT_WIDTH) -> list[str]:
    if entry["kind"] == "proposal":
        return (
            "\n".join(body_lines(entry["proposal_kind"], entry.get("body", {}), width=width))
            .strip("\n")
            .split("\n")
        )
    return [line for line in (entry.get("text", ""),) if line]


def _plain(text: str) -> str:
    """Return one line of text with every character of Markdown escaped."""
    return re.sub(r"([\\`*_\[\]<>#+!|~&])", r"\\\1", clean(text, newlines=False).strip())


def _quoted(text: str) -> str:
    """Return foreign Markdown as a quote. Outside code blocks it has no HTML and no pictures."""
    from markdown_it import MarkdownIt

    lines = clean(text).split("\n")
    # Parsed without HTML, as the result has none: text after a tag could be code or HTML.
    tokens = MarkdownIt("commonmark").disable("html_block").parse("\n".join(lines))
    blocks = (each.map for each in tokens if each.type in ("fence", "code_block") and each.map)
    code = {number for first, end in blocks for number in range(first, end)}
    return "\n".join(
        f"> {line if number in code else _HTML_OR_IMAGE.sub(_entity, line)}".rstrip()
        for number, line in enumerate(lines)
    )


def _entity(match: re.Match[str]) -> str:
    return "&lt;" if match[0] == "<" else "&#33;"


def _block(text: str) -> str:
    """Return a code block whose fence is longer than any run of backticks inside."""
    content = clean(text)
    if not content.strip():
        return ""
    ticks = "`" * max(3, 1 + max((len(run) for run in _TICKS.findall(content)), default=0))
    return f"{ticks}text\n{content}\n{ticks}"


def _drawable(text: str) -> str:
    """Return the text without characters that a terminal acts on or that XML forbids."""
    return clean(text).translate({0xFFFE: 0xFFFD, 0xFFFF: 0xFFFD})
