"""Settings: their values, where each comes from, and what is allowed; changed in the user's configuration.

Specified in ``docs/reference/configuration.md``, changing settings.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, get_args

from cockpit.app.dialogs.pick_theme import pick_theme
from cockpit.app.dialogs.small_dialogs import Ask, PickOne
from cockpit.app.screens.lists.list_screen import ListScreen
from cockpit.config.change_setting import (
    SettingRow,
    change_setting,
    describe_value,
    list_settings,
    read_text,
)
from cockpit.loop.decisions.approval_policy import is_narrower
from widgets.forms.pick_list import PickRow
from widgets.text.detail import DetailRow, fields, sentence
from widgets.text.style_names import DIM, Part
from widgets.work.task_views import QueuedView

_PROJECT = {
    "neutral": "any value, as it protects nothing",
    "fills": "any value, where you have set none",
    "lower": "a lower value only",
    "higher": "a higher value only",
    "none": "not at all",
}
_THEME = "[screen] theme"
_POLICY = "[approval] policy"


class SettingsScreen(ListScreen[SettingRow]):
    """Every setting; Enter changes it, for the next start of cockpit and a theme at once."""

    NAME = "Settings"
    PANE = "settings"
    ENTER = ("change",)
    READS_FILES = True

    async def read_rows(self) -> tuple[Sequence[SettingRow], Sequence[str]]:
        folder = self.host.engine.place.folder
        return await asyncio.to_thread(list_settings, folder), ()

    def describe(self) -> Sequence[Part]:
        changed = sum(1 for row in self.rows if row.origin)
        return [(f"{len(self.rows)} settings, {changed} not the default", DIM)]

    def verbs(self, row: SettingRow) -> Mapping[str, str]:
        return {"change": "change", **({"unset": "default"} if row.origin else {})}

    async def do(self, verb: str, row: SettingRow) -> None:
        if verb == "unset":
            await self._write(row, None)
        elif row.key.full == _THEME:
            pick_theme(self.host, self.read_again)
        elif choices := _choices(row):
            self._pick(
                row,
                [
                    (text, text, "now" if text == describe_value(row.value) else "")
                    for text in choices
                ],
            )
        else:
            self._ask(row)

    def _pick(self, row: SettingRow, rows: Sequence[PickRow]) -> None:
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

    def words(self, row: SettingRow) -> str:
        return f"{row.key.purpose}\n{row.key.full}\n{row.key.env}"

    def draw_row(self, row: SettingRow) -> QueuedView:
        sign = "◆" if row.origin else "·"
        return QueuedView(
            row.key.full,
            row.key.name,
            sign,
            "accent" if row.origin else "dim",
            describe_value(row.value),
            row.key.purpose,
            row.key.table,
        )

    def draw_detail(self, row: SettingRow, detail: Any) -> Sequence[DetailRow]:
        facts = [
            ("setting", row.key.full),
            ("value", describe_value(row.value)),
            ("from", row.origin or "the default"),
            ("default", describe_value(row.key.default)),
            ("allowed", row.key.allowed),
            ("variable", row.key.env),
            ("a project", f"may set {_PROJECT[row.key.project]}"),
        ]
        return [sentence((row.key.purpose, "")), sentence(), *fields(facts)]


def _choices(row: SettingRow) -> tuple[str, ...]:
    """Return the values of a setting that has few."""
    if row.key.type is bool:
        return ("true", "false")
    choices = get_args(row.key.type)
    return choices if choices and all(isinstance(each, str) for each in choices) else ()
