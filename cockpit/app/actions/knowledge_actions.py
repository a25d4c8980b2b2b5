"""Search the project's knowledge, and add a passage to the next packet.

Specified in ``docs/reference/knowledge.md`` and ``docs/reference/screen.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cockpit.app.dialogs.question import Ask, PickOne
from cockpit.app.host import Host
from cockpit.core.errors import CockpitError

if TYPE_CHECKING:
    from cockpit.observe.knowledge.passage import Passage
    from widgets.forms.pick_list import PickRow

_EXCERPT_CELLS = 60


def ask_knowledge(host: Host) -> None:
    """Ask what to search for, then list the passages."""

    def search(question: str | None) -> None:
        if question:
            host.run_in_background(_search(host, question))

    host.open_screen(Ask("Knowledge", "What do you want to know about this project?"), search)


async def _search(host: Host, question: str) -> None:
    try:
        passages = await (await host.engine.knowledge()).search(question)
    except CockpitError as error:
        host.show_error(str(error))
        return

    def add(key: str | None) -> None:
        if key is not None:
            host.run_in_background(_add(host, passages[int(key)]))

    empty = "No passage matches. esc goes back."
    host.open_screen(
        PickOne("Knowledge · ⏎ adds to the next packet", list_rows(passages), empty=empty), add
    )


async def _add(host: Host, passage: Passage) -> None:
    if not host.session_id:
        host.show_error("A passage is added to a session: start one first.")
        return
    try:
        item = await (await host.engine.knowledge()).add(host.session_id, passage)
    except CockpitError as error:
        host.show_error(str(error))
        return
    host.show_notice(f"{item} enters the next packet.")


def list_rows(passages: Sequence[Passage]) -> list[PickRow]:
    """Return one row a passage: where it is and how it begins; at the right its score."""
    return [
        (
            str(number),
            f"{passage.ref}:{passage.start}-{passage.end}  {_begin(passage)}",
            f"{passage.score:.2f}",
        )
        for number, passage in enumerate(passages)
    ]


def _begin(passage: Passage) -> str:
    lines = [line.strip() for line in passage.text.splitlines() if line.strip()]
    # The heading stands in the title already.
    text = lines[1] if len(lines) > 1 and lines[0].startswith(("#", "=")) else "".join(lines[:1])
    name = passage.title.rpartition(" › ")[2]
    return f"{name}: {text}"[:_EXCERPT_CELLS] if name else text[:_EXCERPT_CELLS]
