"""``symbol:NAME``: where a name is defined, with its code, and where it is used.

Python files are read as syntax trees; other text files by whole words.
"""

from __future__ import annotations

import ast
import asyncio
import re
from collections.abc import Iterator

from msgspec import Struct, field

from cockpit.core.canonical_json import digest
from cockpit.core.secrets import mask
from cockpit.core.text import pluralize
from cockpit.observe.normalise_facts import make_fact
from cockpit.observe.outline import opens_something, parse_python, signature, text_lines
from cockpit.observe.preview_cost import Preview, join_names, preview_facts, printable_path
from cockpit.observe.project_files import list_files_with, read_contents
from cockpit.observe.project_snapshot import ProjectSnapshot, SourceFailed
from cockpit.observe.scope_items import ScopeItem
from cockpit.store.context.facts import Fact

MAX_DEFINITIONS = 12
MAX_REFERENCES = 200
_MAX_BODY = 160
_MAX_OTHER = 60
_SNIFF = 8_000
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Place(Struct, frozen=True):
    """A place in a file: first and last line, and its text."""

    path: str
    first: int
    last: int
    title: str
    text: str


class _Uses(Struct):
    name: str
    definitions: list[Place] = field(default_factory=list)
    references: list[Place] = field(default_factory=list)

    @property
    def last_name(self) -> str:
        return re.split(r"\.|::|#", self.name)[-1]


class SymbolSource(Struct, frozen=True):
    """Finds definitions and references."""

    async def preview(self, item: ScopeItem, ground: ProjectSnapshot) -> Preview:
        """Find the uses, measure their text and discard it."""
        uses = await _uses(item.ref, ground)
        return preview_facts(item, [_make_fact(item, ground, uses)], note=_counts(uses))

    async def fetch(self, item: ScopeItem, ground: ProjectSnapshot) -> list[Fact]:
        """One fact. Its provenance lists definitions (path, first and last line) and references
        (path, line). Raises :class:`SourceFailed` when the name occurs nowhere."""
        return [_make_fact(item, ground, await _uses(item.ref, ground))]


def _make_fact(item: ScopeItem, ground: ProjectSnapshot, uses: _Uses) -> Fact:
    text = _text(uses)
    defined = f" ({join_names([_place(p) for p in uses.definitions])})" if uses.definitions else ""
    return make_fact(
        item,
        text,
        outline=_outline(uses),
        reference=f"{item.ref}: {_counts(uses)}{defined}",
        provenance={
            "name": item.ref,
            "rev": ground.rev,
            "definitions": [[p.path, p.first, p.last] for p in uses.definitions[:MAX_DEFINITIONS]],
            "references": [[p.path, p.first] for p in uses.references[:MAX_REFERENCES]],
            "sha256": digest(text),
        },
        key=item.ref,
    )


async def _uses(name: str, ground: ProjectSnapshot) -> _Uses:
    uses = _Uses(name)
    async for chunk in read_contents(ground, await list_files_with(ground, uses.last_name)):
        await asyncio.to_thread(_scan, uses, chunk)
    if not uses.definitions and not uses.references:
        raise SourceFailed(f"{name!r} occurs in no text file of the project")
    return uses


def _scan(uses: _Uses, chunk: list[tuple[str, bytes]]) -> None:
    word = uses.last_name.encode()
    for path, content in chunk:
        if word not in content or b"\0" in content[:_SNIFF]:
            continue
        text = content.decode("utf-8", "replace")
        tree = parse_python(text) if path.endswith((".py", ".pyi")) else None
        if tree is None:
            _scan_words(uses, path, text_lines(mask(text)))
        else:
            _scan_tree(uses, path, tree, text_lines(mask(text)))


def _scan_tree(uses: _Uses, path: str, tree: ast.Module, lines: list[str]) -> None:
    defined: set[int] = set()
    module = path.rsplit(".", 1)[0].removesuffix("/__init__").replace("/", ".")
    suffix = "." + re.sub(r"::|#", ".", uses.name)
    for qualified, node, title in _definitions(tree, ""):
        if f".{module}.{qualified}".endswith(suffix):
            decorators = node.decorator_list if isinstance(node, _Definition) else []
            first = min([node.lineno, *(d.lineno for d in decorators)])
            last = node.end_lineno or node.lineno
            body = _cut(lines[first - 1 : last], _MAX_BODY)
            uses.definitions.append(Place(path, first, last, title, body))
            defined.add(node.lineno)
    used = {n for n in _mentions(tree, uses.last_name) if n not in defined}
    uses.references += [_line(path, n, lines) for n in sorted(used) if n <= len(lines)]


def _definitions(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.stmt, str]]:
    """Qualified name, node and title of everything that is given a name, in order."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Definition):
            name = f"{prefix}{child.name}"
            yield name, child, mask(signature(child))[:200]
            yield from _definitions(child, f"{name}.")
        elif isinstance(child, ast.Assign | ast.AnnAssign):
            targets = child.targets if isinstance(child, ast.Assign) else [child.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    yield f"{prefix}{target.id}", child, f"{target.id} = …"
        elif isinstance(child, ast.stmt | ast.ExceptHandler):
            yield from _definitions(child, prefix)


def _mentions(tree: ast.Module, name: str) -> Iterator[int]:
    for node in ast.walk(tree):
        if (isinstance(node, ast.Name) and node.id == name) or (
            isinstance(node, ast.alias)
            and name in {*node.name.split("."), *(node.asname or "").split(".")}
        ):
            yield node.lineno
        elif isinstance(node, ast.Attribute) and node.attr == name:
            yield node.end_lineno or node.lineno
        elif isinstance(node, _Definition) and node.name == name:
            yield node.lineno


def _scan_words(uses: _Uses, path: str, lines: list[str]) -> None:
    word = re.compile(rf"(?<!\w){re.escape(uses.last_name)}(?!\w)")
    for number, line in enumerate(lines, 1):
        if len(line) > 2_000 or not word.search(line):
            continue
        if opens_something(path, line) and not path.endswith((".md", ".rst", ".txt")):
            last = _body_end(lines, number)
            body = _cut(lines[number - 1 : last], _MAX_OTHER)
            uses.definitions.append(Place(path, number, last, line.strip()[:200], body))
        else:
            uses.references.append(_line(path, number, lines))


def _body_end(lines: list[str], number: int) -> int:
    """The last line of what begins at line ``number``, told by indentation."""
    start = _indent(lines[number - 1])
    for at in range(number, min(len(lines), number + 400)):
        line = lines[at]
        if line.strip() and _indent(line) <= start:
            return at + 1 if line.strip()[0] in "})]" or line.strip() == "end" else at
    return min(len(lines), number + 400)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _line(path: str, number: int, lines: list[str]) -> Place:
    return Place(path, number, number, "", lines[number - 1].strip()[:300])


def _cut(lines: list[str], most: int) -> str:
    kept = "".join(lines[:most]).rstrip("\n")
    return kept if len(lines) <= most else f"{kept}\n… {len(lines) - most} more lines"


def _place(place: Place) -> str:
    span = f"{place.first}-{place.last}" if place.last > place.first else str(place.first)
    return f"{printable_path(place.path)}:{span}"


def _counts(uses: _Uses) -> str:
    return f"{pluralize(len(uses.definitions), 'definition')}, {pluralize(len(uses.references), 'use')}"


def _text(uses: _Uses) -> str:
    parts = [f"{uses.name}: {_counts(uses)}"]
    for place in uses.definitions[:MAX_DEFINITIONS]:
        parts.append(f"\ndefined at {_place(place)}\n{place.text}")
    if len(uses.definitions) > MAX_DEFINITIONS:
        parts.append(f"… {len(uses.definitions) - MAX_DEFINITIONS} more definitions")
    return "\n".join([*parts, *_used(uses)])


def _outline(uses: _Uses) -> str:
    defined = [f"{_place(p)}: {p.title}" for p in uses.definitions[:MAX_DEFINITIONS]]
    return "\n".join([f"{uses.name}: {_counts(uses)}", *defined, *_used(uses, most=20)])


def _used(uses: _Uses, most: int = MAX_REFERENCES) -> list[str]:
    if not uses.references:
        return []
    lines = [f"{_place(place)}: {place.text}" for place in uses.references[:most]]
    more = len(uses.references) - most
    return ["\nused at", *lines, *([f"… {more} more uses"] if more > 0 else [])]
