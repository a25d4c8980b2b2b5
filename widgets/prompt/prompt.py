"""The prompt: type, send, complete, and search sent messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from textual import events
from textual.content import Content
from textual.message import Message
from textual.strip import Strip
from textual.widgets import TextArea
from textual.widgets.text_area import Edit, EditResult

from widgets.prompt.completions import Completions
from widgets.prompt.folded_pastes import FoldedPastes
from widgets.text.clean import clean, unify_newlines
from widgets.views import CompletionView

CompletionKind = Literal["command", "file", "task"]
Complete = Callable[[CompletionKind, str], Sequence[CompletionView]]
"""Called with the kind and the text after its sign; returns the best choices first."""

_COMMAND = re.compile(r"/(\S*(?: [^\s@]*)?)")
"""A command, and the word after it."""
_FILE = re.compile(r"(?:^|(?<=\s))@(\S*)$")
_TASK = re.compile(r"(?:^|(?<=\s))T-(\d*)$")
_SIGNS: Mapping[str, str] = {"command": "/", "file": "@", "task": "T-"}
_MATCHES_MOST = 50
_LEAST = 2
_NEWLINE = ("shift+enter", "ctrl+j", "alt+enter")


class Prompt(TextArea):
    """A text area that grows from one to eight lines and never takes a pasted newline for Enter.

    Enter posts :class:`Submitted` with the text (also an empty one) and clears the prompt;
    :meth:`put` puts a draft back. Escape closes a list, or posts :class:`Escaped`. Up and down at
    the edges walk through ``entries``, Ctrl+R searches them. ``/``, ``@`` and ``T-`` ask ``complete``. A long
    paste is folded to one mark, which :attr:`full_text` and what is sent unfold. Ctrl+S puts the draft
    aside and back.
    """

    DEFAULT_CSS = """
    Prompt { height: auto; min-height: 1; max-height: 10; width: 1fr; padding: 0 1;
        scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; }
    """

    @dataclass
    class Submitted(Message):
        """The user pressed Enter; ``text`` is the text of the prompt, possibly empty.

        ``pressed_at`` is the time of the key's event, which tells it apart from others.
        """

        text: str
        pressed_at: float

    @dataclass
    class Escaped(Message):
        """The user pressed Escape with no list open."""

        pressed_at: float

    @dataclass
    class HelpRequested(Message):
        """The user pressed ``?`` in an empty prompt."""

    @dataclass
    class Stashed(Message):
        """The user put the draft aside, or took one back; ``drafts`` are those put aside now."""

        drafts: tuple[str, ...]
        is_put_aside: bool

    @dataclass
    class Typed(Message):
        """A key other than Enter or Escape was pressed, or text was pasted."""

    def __init__(
        self,
        *,
        placeholder: str = "",
        complete: Complete | None = None,
        entries: Sequence[str] = (),
        id: str | None = None,  # noqa: A002 -- Textual's name for it
        classes: str | None = None,
    ) -> None:
        super().__init__(
            id=id, classes=classes, soft_wrap=True, compact=False, highlight_cursor_line=False
        )
        self.cursor_blink = False
        self.complete = complete
        self.entries = list(entries)
        self.hint = placeholder
        self._list = Completions()
        self._list_for: Literal["", "search", CompletionKind] = ""
        self._listed: tuple[str, str] = ("", "")
        """The kind and the beginning of what the list completes."""
        self._at: int | None = None
        self._draft = ""
        self._policy = ""
        self._pastes = FoldedPastes()
        self.stash: list[str] = []
        """Drafts that were put aside, the newest last."""

    @property
    def full_text(self) -> str:
        """The text with all pastes unfolded: what is sent."""
        return self._pastes.unfold(self.text)

    @property
    def hint(self) -> str:
        """The dim text in an empty prompt."""
        return self._hint

    @hint.setter
    def hint(self, text: str) -> None:
        self._hint = text
        self._fit_hint()

    @property
    def policy(self) -> str:
        """The text in the lower border: the approval policy."""
        return self._policy

    @policy.setter
    def policy(self, text: str) -> None:
        self._policy = text
        self.border_subtitle = Content(clean(text, newlines=False)) if text else None

    def on_resize(self) -> None:
        """Cut the text in an empty prompt where the room ends, with an ellipsis."""
        self._fit_hint()

    def _fit_hint(self) -> None:
        width = self.content_size.width
        content = Content(clean(self._hint, newlines=False))
        self.placeholder = content.truncate(width, ellipsis=True) if width else content

    def put(self, text: str) -> None:
        """Put a draft into the prompt, its pastes folded, the cursor at its end. Nothing is posted."""
        self.load_text(self._pastes.fold_again(clean(unify_newlines(text))))
        self.move_cursor(self.document.end)

    def load_text(self, text: str) -> None:
        """Replace the whole text, cleaned."""
        super().load_text(clean(unify_newlines(text)))

    def edit(self, edit: Edit) -> EditResult:
        """Apply an edit with its text cleaned, so that the document is always clean."""
        edit.text = clean(unify_newlines(edit.text))
        return super().edit(edit)

    def render_line(self, y: int) -> Strip:
        # Textual cannot wrap a placeholder into a single cell.
        width = self.content_size.width
        return Strip.blank(width) if width < _LEAST else super().render_line(y)

    async def on_mount(self) -> None:
        await self.screen.mount(self._list)

    async def on_unmount(self) -> None:
        if self._list.is_attached:
            await self._list.remove()

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()  # the parent's handler would insert it unfolded
        self.post_message(self.Typed())
        text = self._pastes.fold(clean(unify_newlines(event.text)))
        self._insert(text, *self.selection)

    async def _on_key(self, event: events.Key) -> None:
        key = event.key
        if key not in ("enter", "escape"):
            self.post_message(self.Typed())
        if self._list.open and self._list_key(key):
            _consume(event)
        elif key == "enter":
            _consume(event)
            self._submit(event.time)
        elif key in _NEWLINE:
            _consume(event)
            self.insert("\n")
        elif key == "shift+tab":
            _consume(event)  # no action has taken it: it would move the focus to a pane
        elif key == "escape":
            _consume(event)
            self.post_message(self.Escaped(event.time))
        elif key == "ctrl+r":
            _consume(event)
            self._search()
        elif (edit := self._EDITS.get(key)) is not None and edit(self):
            _consume(event)
        elif event.character == "?" and not self.text:
            _consume(event)
            self.post_message(self.HelpRequested())
        elif key == "up" and self.cursor_at_first_line and self.entries:
            _consume(event)
            self._recall(-1)
        elif key == "down" and self.cursor_at_last_line and self._at is not None:
            _consume(event)
            self._recall(1)
        elif not event.is_printable and (bound := self._bindings.key_to_bindings.get(key)):
            # Textual runs these once the key has gone up to the application: the next key would be first.
            _consume(event)
            for binding in bound:
                await self.run_action(binding.action)

    def _list_key(self, key: str) -> bool:
        """Handle a key for the open list; False lets it through to the text."""
        if self._list_for != "search" and self._completion_request() != self._listed:
            self._complete_now()  # the text has changed, and its message is on the way
            if not self._list.open:
                return False
        if key in ("up", "down", "ctrl+p", "ctrl+n"):
            back = key in ("up", "ctrl+p")
            self._list.move(-1 if back else 1)
        elif key == "ctrl+r" and self._list_for == "search":
            self._list.move(1)
        elif key == "escape":
            if self._list_for == "search":
                self._end_search(self._draft)
            else:
                self._close()
        elif key == "tab" or (key == "enter" and not self._is_complete()):
            self._take()
        elif key == "enter":
            self._close()
            return False
        else:
            return False
        return True

    def _is_complete(self) -> bool:
        """Return True when the typed text is the choice itself: Enter then sends it."""
        chosen = self._list.chosen
        if chosen is None:
            return False
        if self._list_for == "task":
            return self._completion_request() == ("task", chosen.text.removeprefix("T-"))
        return self._list_for == "command" and self.text.strip().lstrip("/") == chosen.text.lstrip(
            "/"
        )

    def undo(self) -> None:
        """Undo the last edits; their cursor comes back with them."""
        # Textual measures the place of the cursor in the shorter text, where it may not be.
        if self.history.undo_stack:
            self.move_cursor((0, 0))
            super().undo()

    def redo(self) -> None:
        """Do again what was undone."""
        if self.history.redo_stack:
            self.move_cursor((0, 0))
            super().redo()

    def _undo(self) -> bool:
        self.undo()
        return True

    def _clear_before(self) -> bool:
        """Clear all when nothing stands before the cursor in its line; else the key deletes that."""
        if self.cursor_location[1] or not self.text:
            return False
        self.clear()
        return True

    def _delete_mark(self) -> bool:
        """Delete the whole mark of a folded paste before the cursor."""
        row, column = self.cursor_location
        mark = self._pastes.find_mark(self.document.get_line(row), column)
        if mark is None or mark[1] != column or self.selected_text:
            return False
        self.delete((row, mark[0]), (row, mark[1]))
        return True

    def _unfold_mark(self) -> bool:
        """Put a folded paste in the place of its mark at the cursor."""
        row, column = self.cursor_location
        line = self.document.get_line(row)
        if (mark := self._pastes.find_mark(line, max(column, 1))) is not None:
            start, end = mark
            self._insert(self._pastes.unfold(line[start:end]), (row, start), (row, end))
        return True

    def _insert(self, text: str, start: tuple[int, int], end: tuple[int, int]) -> None:
        """Put ``text`` in a place as keys do: the cursor behind it, and in the document when it is undone."""
        if edited := self._replace_via_keyboard(text, start, end):
            self.move_cursor(edited.end_location)

    def _put_aside(self) -> bool:
        """Put the draft aside; with an empty prompt, take the last one back."""
        if is_put_aside := bool(self.text.strip()):
            self.stash.append(self.full_text)
            self.clear()
        elif self.stash:
            self.put(self.stash.pop())
        else:
            return True
        self.post_message(self.Stashed(tuple(self.stash), is_put_aside))
        return True

    _EDITS: ClassVar[Mapping[str, Callable[[Prompt], bool]]] = {
        "ctrl+underscore": _undo,
        "ctrl+u": _clear_before,
        "backspace": _delete_mark,
        "alt+o": _unfold_mark,
        "ctrl+s": _put_aside,
    }
    """Keys that edit the text; False leaves the key to the text area."""

    def _submit(self, pressed_at: float) -> None:
        text = self.full_text
        if text.strip():
            self._pastes.forget()
            if not self.entries or self.entries[-1] != text:
                self.entries.append(text)
            self.load_text("")
        self._at = None
        self._close()
        self.post_message(self.Submitted(text if text.strip() else "", pressed_at))

    def _recall(self, step: int) -> None:
        if self._at is None:
            self._draft = self.text
            self._at = len(self.entries)
        self._at = max(0, self._at + step)
        if self._at >= len(self.entries):
            self._at = None
            self.put(self._draft)
        else:
            self.put(self.entries[self._at])
        self._close()

    def _search(self) -> None:
        if self.entries:
            self._draft = self.text
            self._list_for = "search"
            self._offer()

    def _end_search(self, text: str) -> None:
        self._close()
        self.put(text)

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Offer completions for the current text."""
        if event.text_area is self:
            if self._list_for == "search":
                self._offer()
            elif self.has_focus and self._at is None:
                self._complete_now()

    def _offer(self) -> None:
        words = self.text.casefold().split()
        matches = [
            CompletionView(entry)
            for entry in dict.fromkeys(reversed(self.entries))
            if all(word in entry.casefold() for word in words)
        ]
        shown = tuple(matches[:_MATCHES_MOST]) or (CompletionView("", "no sent message matches"),)
        self._list.show(shown, self)

    def _complete_now(self) -> None:
        kind, prefix = self._completion_request()
        if kind == "" or self.complete is None:
            self._close()
            return
        self._list_for, self._listed = kind, (kind, prefix)
        self._list.show(tuple(self.complete(kind, prefix)), self)

    def _completion_request(self) -> tuple[Literal["", CompletionKind], str]:
        row, column = self.cursor_location
        before = self.document.get_line(row)[:column]
        if match := _TASK.search(before):
            return "task", match[1]
        if row == 0 and (match := _COMMAND.fullmatch(before)):
            return "command", match[1]
        if match := _FILE.search(before):
            return "file", match[1]
        return "", ""

    def _take(self) -> None:
        """Put the highlighted choice into the text."""
        chosen, kind = self._list.chosen, self._list_for
        self._close()
        if chosen is None:
            return
        if kind == "search":
            self.put(chosen.text or self._draft)
            return
        requested, prefix = self._completion_request()
        if requested == kind:
            row, column = self.cursor_location
            sign = _SIGNS[kind]
            text = sign + chosen.text.removeprefix(sign) + " "
            self.replace(text, (row, column - len(prefix) - len(sign)), (row, column))

    def _close(self) -> None:
        self._list_for = ""
        if self._list.open:
            self._list.close()


def _consume(event: events.Key) -> None:
    event.stop()
    event.prevent_default()
