"""A block of the conversation, opened: everything that the journal has of it, live while it runs.

Specified in ``docs/reference/screen.md``, blocks.
"""

from __future__ import annotations

import asyncio
import sqlite3
from functools import partial

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from cockpit.app.dialogs.small_dialogs import Dialog
from cockpit.app.host import Host
from cockpit.app.state.block_detail import BlockDetail, LiveRun, describe_block
from cockpit.store.journal.journal import Row, rows
from widgets.proposals.diff_list import DiffList
from widgets.text.clean import clean
from widgets.text.style_names import line

_LOOK_S = 0.5
_MOST_ROWS = 200
"""Rows of a block that are read, the newest."""


class BlockView(Dialog[None]):
    """One block of a session's conversation; it is read again while something of it runs."""

    BINDINGS = [  # noqa: RUF012 -- Textual's way
        Binding("q,enter", "leave", "close", show=False),
        Binding("y", "copy('text')", "copy all", show=False),
        Binding("p", "copy('path')", "copy the path", show=False),
        Binding("c", "copy('command')", "copy the command", show=False),
        Binding("o,ctrl+g", "edit", "open in the editor", show=False),
    ]

    def __init__(self, host: Host, session_id: str, key: str, title: str) -> None:
        super().__init__()
        self._host, self._session_id, self._key, self._title = host, session_id, key, title
        self._detail = BlockDetail((), "")
        self._seqs: tuple[int, ...] = ()
        self._rows: list[Row] = []

    def compose(self) -> ComposeResult:
        with Vertical(id="block", classes="box") as box:
            box.border_title = Content(clean(self._title, newlines=False) or "block")
            box.border_subtitle = Content(
                "j k scroll · y copy · p path · c command · o editor · esc back"
            )
            yield Static(id="block-status")
            yield DiffList(empty="Nothing more is recorded of it.")

    async def on_mount(self) -> None:
        self.query_one(DiffList).focus()
        await self._read()
        self.set_interval(_LOOK_S, self._read_again)

    async def _read_again(self) -> None:
        talk = self._host.state.conversation(self._session_id)
        if talk.running or talk.rows_of(self._key) != self._seqs:
            await self._read()

    async def _read(self) -> None:
        from cockpit.act.live_output import read_live_output

        store = self._host.engine.store
        talk = self._host.state.conversation(self._session_id)
        seqs = talk.rows_of(self._key)[-_MOST_ROWS:]
        if seqs != self._seqs:
            self._seqs = seqs
            self._rows = await store.read(partial(_read_rows, seqs=seqs))
        running: dict[str, LiveRun] = {}
        for each in list(talk.running.values()):
            output = await asyncio.to_thread(read_live_output, store.path, each.action_id)
            running[each.action_id] = LiveRun(each, output or "")
        now = store.clock.now()
        detail = describe_block(self._rows, running=running, now=now)
        if self.is_attached and detail != self._detail:
            was_read, self._detail = bool(self._detail.parts), detail
            status = self.query_one("#block-status", Static)
            status.update(line(*detail.status))
            status.display = bool(detail.status)
            self.query_one(DiffList).show(detail.parts, follow=was_read)

    def action_copy(self, what: str) -> None:
        """Copy all of it, its first path, or its command."""
        detail = self._detail
        selected = self.get_selected_text() if what == "text" else None
        text = {
            "text": selected or detail.text,
            "path": self._path(),
            "command": detail.command,
        }[what]
        if text:
            self.app.copy_to_clipboard(clean(text))
        self._host.show_notice(f"{what} copied" if text else f"there is no {what} here")

    def _path(self) -> str:
        path, _ = self.query_one(DiffList).place
        return path or next(iter(self._detail.paths), "")

    async def action_edit(self) -> None:
        """Open the file under the cursor in the user's editor, at the line in view."""
        path, line = self.query_one(DiffList).place
        if not path:
            path, _, number = self._path().partition(":")
            line = int(number) if number.isdigit() else 1
        if not path:
            self._host.show_notice("it names no file")
            return
        await self._host.open_in_editor(self._host.engine.place.root, path, line)


def _read_rows(connection: sqlite3.Connection, *, seqs: tuple[int, ...]) -> list[Row]:
    return [row for seq in seqs for row in rows(connection, after=seq - 1, limit=1)]
