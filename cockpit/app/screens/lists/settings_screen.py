"""Settings: their values, where each comes from, and what is allowed; changed in the user's configuration.

Specified in ``docs/reference/configuration.md``, changing settings.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import get_args

from cockpit.app.dialogs.pick_theme import pick_theme
from cockpit.app.dialogs.small_dialogs import Ask, PickOne
from cockpit.app.host import Host
from cockpit.app.screens.lists.collection_screen import CollectionScreen
from cockpit.collections.collection import Collection
from cockpit.config.change_setting import (
    SettingRow,
    change_setting,
    describe_value,
    read_text,
)
from cockpit.loop.decisions.approval_policy import is_narrower
from widgets.forms.pick_list import PickRow

_THEME = "[screen] theme"
_POLICY = "[approval] policy"


class SettingsScreen(CollectionScreen):
    """Every setting; Enter changes it, for the next start of cockpit and a theme at once."""

    def __init__(self, host: Host, collection: Collection[SettingRow]) -> None:
        super().__init__(host, collection)
        self.ENTER = ("change",)

    def verbs(self, row: SettingRow) -> Mapping[str, str]:
        return {"change": "change", **({"unset": "default"} if row.origin else {})}

    async def do(self, verb: str, row: SettingRow) -> None:
        if verb == "unset":
            await self._write(row, None)
        elif row.key.full == _THEME:
            pick_theme(self.host, self.read_again)
        elif choices := _choices(row):
            self._choose(
                row,
                [
                    (text, text, "now" if text == describe_value(row.value) else "")
                    for text in choices
                ],
            )
        else:
            self._ask(row)

    def _choose(self, row: SettingRow, rows: Sequence[PickRow]) -> None:
        self.host.open_screen(PickOne(row.key.full, rows), partial(self._accept, row))

    def _ask(self, row: SettingRow) -> None:
        question = f"{row.key.purpose}. It must be {row.key.allowed}."
        ask = Ask(
            row.key.full, question, value="" if row.value is None else describe_value(row.value)
        )
        self.host.open_screen(ask, partial(self._accept, row))

    def _accept(self, row: SettingRow, text: str | None) -> None:
        if not text or text == describe_value(row.value):
            return
        if row.key.full == _POLICY and is_narrower(str(row.value), text):
            self._ask_again(row, text)
        else:
            self.host.request(lambda: self._write(row, text))

    def _ask_again(self, row: SettingRow, policy: str) -> None:
        """Ask before later sessions approve more by themselves; the cursor is on the answer no."""

        def widen(answer: str | None) -> None:
            if answer == "yes":
                self.host.request(lambda: self._write(row, policy))

        answers = [
            ("no", f"No, keep {row.value}", ""),
            ("yes", f"Yes, {policy} from now on", "wider"),
        ]
        self.host.open_screen(PickOne("Approve more without asking?", answers), widen)

    async def _write(self, row: SettingRow, text: str | None) -> None:
        value = None if text is None else read_text(row.key, text)
        path = await asyncio.to_thread(change_setting, row.key, value)
        self.read_again()
        if row.origin and row.origin != str(path):
            note = f"Saved in {path}. {row.origin} sets it too, which counts."
        else:
            note = f"Saved in {path}. It counts from the next start of cockpit on."
        self.host.show_notice(note)


def _choices(row: SettingRow) -> tuple[str, ...]:
    """Return the values of a setting that has few."""
    if row.key.type is bool:
        return ("true", "false")
    choices = get_args(row.key.type)
    return choices if choices and all(isinstance(each, str) for each in choices) else ()
