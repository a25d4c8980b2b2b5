"""``cockpit knowledge``: index what a project says about itself, search it, and count it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
from msgspec import to_builtins

from cockpit.cli_options import AS_JSON, examples
from cockpit.commands.open_project import find_project, load_project_settings, open_store
from cockpit.commands.terminal import say, show, show_json
from cockpit.core.text import pluralize
from cockpit.observe.knowledge.passage import KINDS, Passage

if TYPE_CHECKING:
    from cockpit.loop.knowledge.librarian import IndexState, Librarian

_EXCERPT_LINES = 6
_EXCERPT_CELLS = 160
INSTALL = "cockpit doctor --install vector"


@click.command(
    short_help="Index and search what a project says.",
    epilog=examples(
        'cockpit knowledge "how is a release made"',
        "cockpit knowledge --kind note retries",
        "cockpit knowledge --index",
    ),
)
@click.argument("question", nargs=-1)
@click.option("--index", is_flag=True, help="Index what changed since the last time, and vectors.")
@click.option("--rebuild", is_flag=True, help="With --index, start again with an empty index.")
@click.option(
    "--limit",
    type=click.IntRange(1, 50),
    metavar="N",
    help="Print at most this many passages. Default: the setting `knowledge_limit`.",
)
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1),
    metavar="SCORE",
    help="Leave out passages that score less, from 0 to 1. Default: the setting `knowledge_threshold`.",
)
@click.option(
    "--kind",
    "kinds",
    type=click.Choice(KINDS),
    multiple=True,
    help="Use only documents of this kind. Repeatable. Default: all.",
)
@AS_JSON
def knowledge(
    question: tuple[str, ...],
    index: bool,
    rebuild: bool,
    limit: int | None,
    threshold: float | None,
    kinds: tuple[str, ...],
    as_json: bool,
) -> None:
    """Print the passages of this project that answer a question.

    They are of documents, docstrings, notes, handoffs and skills, each with its score, file and lines, the
    best first. The index is brought up to date before. With the extra `vector` installed, --index gives
    chunks their vectors, about 15 a second.
    """
    if index:
        if question or kinds or as_json or limit is not None or threshold is not None:
            raise click.UsageError("--index takes no question and no other option than --rebuild.")
        with _opened() as librarian:
            asyncio.run(_index(librarian, rebuild=rebuild))
        return
    if rebuild:
        raise click.UsageError("--rebuild is for --index.")
    if not question:
        raise click.UsageError("Missing argument 'QUESTION'. Or index the project with --index.")
    with _opened() as librarian:
        passages = asyncio.run(
            librarian.find(
                " ".join(question), kinds=kinds or KINDS, limit=limit, threshold=threshold
            )
        )
        _say_notice(librarian)
    if as_json:
        show_json([to_builtins(passage) for passage in passages])
    elif passages:
        show("\n\n".join(_describe(passage) for passage in passages))
    else:
        say(
            "No passage answers this. Try other words, a lower --threshold, or `cockpit debug show"
            " knowledge` for what is indexed."
        )


def show_index(*, as_json: bool) -> None:
    """Print how many documents, chunks and vectors are indexed."""
    with _opened() as librarian:
        state = asyncio.run(librarian.read_state())
        _say_notice(librarian)
    counts = state.counts
    if as_json:
        show_json(
            {
                "path": str(state.path),
                "documents": dict(counts.documents),
                "chunks": counts.chunks,
                "vectors": counts.vectors,
                "bytes": counts.bytes,
                "full": counts.is_full,
                "vector_extra": state.has_vectors,
            }
        )
        return
    show("\n".join(_describe_state(state)))


async def _index(librarian: Librarian, *, rebuild: bool) -> None:
    done = await (librarian.rebuild() if rebuild else librarian.refresh())
    _say_notice(librarian)
    while (await librarian.embed()) > 0:
        continue
    state = await librarian.read_state()
    say(f"{pluralize(done.changed, 'document')} indexed, {done.dropped:,} gone.")
    if not done.is_complete:
        say("The project has more documents than are indexed; the first by path are.")
    show("\n".join(_describe_state(state)))


@contextmanager
def _opened() -> Iterator[Librarian]:
    from cockpit.loop.knowledge.librarian import open_librarian

    place = find_project()
    settings = load_project_settings(place).runtime
    with open_store(place) as store, open_librarian(place, settings, store) as librarian:
        yield librarian


def _say_notice(librarian: Librarian) -> None:
    if librarian.notice:
        say(librarian.notice)


def _describe(passage: Passage) -> str:
    from cockpit.observe.preview_cost import printable_path

    head = f"{passage.score:.2f}  {printable_path(passage.ref)}:{passage.start}-{passage.end}  {passage.kind}"
    title = f"\n      {passage.title}" if passage.title else ""
    lines = [line.rstrip()[:_EXCERPT_CELLS] for line in passage.text.splitlines() if line.strip()]
    more = len(lines) - _EXCERPT_LINES
    shown = [*lines[:_EXCERPT_LINES], *([f"… {more} more lines"] if more > 0 else [])]
    return head + title + "".join(f"\n      │ {line}" for line in shown)


def _describe_state(state: IndexState) -> Iterator[str]:
    counts = state.counts
    names = ", ".join(f"{count:,} {kind}" for kind, count in counts.documents.items())
    yield f"{sum(counts.documents.values()):,} documents ({names or 'none yet'})"
    yield f"{counts.chunks:,} chunks, {counts.bytes / 1e6:.1f} MB in {state.path}"
    if not state.has_vectors:
        yield f"keyword search alone: the extra 'vector' is not installed. Run `{INSTALL}`."
    else:
        yield f"{counts.vectors:,} of {counts.chunks:,} chunks have vectors"
    if counts.is_full:
        yield "the index is full: documents past its limit are left out"
