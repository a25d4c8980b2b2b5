"""Settings: their values, where each comes from, and what is allowed.

Specified in ``docs/reference/configuration.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cockpit.access.token_scopes import ADMIN
from cockpit.collections.collection import Collection, Field, Part, View

if TYPE_CHECKING:
    from cockpit.config.change_setting import SettingRow

_PROJECT = {
    "neutral": "any value, as it protects nothing",
    "fills": "any value, where you have set none",
    "lower": "a lower value only",
    "higher": "a higher value only",
    "none": "not at all",
}


def _read(view: View, only_set: bool) -> Sequence[SettingRow]:
    from cockpit.config.change_setting import list_settings

    return [row for row in list_settings(view.place.folder) if row.origin or not only_set]


def _find(view: View, name: str) -> SettingRow:
    from cockpit.config.change_setting import find_setting

    key = find_setting(name)
    return next(row for row in _read(view, only_set=False) if row.key.full == key.full)


def _body(row: SettingRow) -> dict[str, Any]:
    return {
        "name": f"{row.key.table}.{row.key.name}",
        "value": list(row.value) if isinstance(row.value, tuple) else row.value,
        "origin": row.origin,
        "allowed": row.key.allowed,
        "purpose": row.key.purpose,
    }


def _value(row: SettingRow) -> str:
    from cockpit.config.change_setting import describe_value

    return describe_value(row.value)


def _detail(row: SettingRow) -> Sequence[Part]:
    from cockpit.config.change_setting import describe_value

    facts = [
        ("setting", row.key.full),
        ("value", _value(row)),
        ("from", row.origin or "the default"),
        ("default", describe_value(row.key.default)),
        ("allowed", row.key.allowed),
        ("variable", row.key.env),
        ("a project", f"may set {_PROJECT[row.key.project]}"),
    ]
    return Part(text=row.key.purpose), Part(fields=facts)


COLLECTION: Collection[SettingRow] = Collection(
    name="settings",
    command="settings",
    title="Settings",
    summary="List and change settings.",
    help="""List and change your settings, with values and origins.

    A project's own settings, variables and options override yours.
    """,
    examples=("cockpit settings", "cockpit settings set limits.max_waves 20"),
    row="NAME",
    sample="limits.max_waves",
    columns={
        "SETTING": lambda row: f"{row.key.table}.{row.key.name}",
        "VALUE": _value,
        "FROM": lambda row: row.origin or "default",
        "PURPOSE": lambda row: row.key.purpose,
    },
    read=_read,
    find=_find,
    none="Every setting has its default.",
    detail=_detail,
    body=_body,
    filters=(
        Field(
            "only_set", "List only those that are not the default.", "--set", "flag", default=False
        ),
    ),
    scope=ADMIN,
    source="files",
    key="alt+comma",
    synonyms="configuration config preferences options model api key",
    state=lambda row: "active" if row.origin else "gone",
    headline=lambda rows: (
        f"{len(rows)} settings, {sum(bool(row.origin) for row in rows)} not the default"
    ),
    words=lambda row: f"{row.key.purpose}\n{row.key.full}\n{row.key.env}",
    reads_files=True,
)
