"""Cut a document into chunks by its kind and its name. See ``docs/reference/knowledge.md``."""

from __future__ import annotations

from cockpit.observe.knowledge.chunk_docstrings import chunk_python, chunk_shell
from cockpit.observe.knowledge.chunk_markdown import chunk_markdown, chunk_plain
from cockpit.observe.knowledge.passage import ROUTE, Chunk

MARKDOWN = (".md", ".markdown", ".mdx")
PROSE = (*MARKDOWN, ".rst", ".txt", ".adoc", ".asciidoc")
"""The ends of the names of documents."""
PYTHON = (".py", ".pyi")
SHELL = (".sh", ".bash")
SOURCE = (*PYTHON, *SHELL)
"""The ends of the names of source files whose doc comments are indexed."""


def kind_of_file(path: str) -> str | None:
    """Return the kind of document that a file is; None for a file that is not indexed."""
    name = path.lower()
    if name.endswith(PROSE):
        return "docs"
    return "docstring" if name.endswith(SOURCE) else None


def chunk_document(kind: str, ref: str, title: str, text: str) -> list[Chunk]:
    """Return the chunks of a document, in the order of their lines."""
    if kind == ROUTE:
        lines = enumerate(text.splitlines(), 1)
        return [Chunk(number, number, title, line) for number, line in lines if line.strip()]
    if kind == "docstring":
        chunk = chunk_python if ref.lower().endswith(PYTHON) else chunk_shell
        return chunk(text, ref)
    is_plain = kind == "docs" and not ref.lower().endswith(MARKDOWN)
    return chunk_plain(text, title) if is_plain else chunk_markdown(text, title)
