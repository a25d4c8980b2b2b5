"""A form as text for the user's editor: TOML front matter, then Markdown; and read back.

The short fields are between two lines of ``+++``; the first long field is the text below, each
further one follows under a line ``+++ its label``. The screen's forms and ``cockpit tasks edit``
write and read the same text.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence

from msgspec import Struct

from cockpit.backlog.validation import BacklogInvalid

_FENCE = "+++"


class FormField(Struct, frozen=True):
    """One field: ``long`` is Markdown of many lines, everything else one line.

    A one-line value is one of ``choices`` where there are any; else ``hint`` describes it.
    """

    name: str
    label: str
    hint: str = ""
    choices: tuple[str, ...] = ()
    long: bool = False


def write_form(fields: Sequence[FormField], values: Mapping[str, str]) -> str:
    """Return the text of ``values`` by field name. The caller cleans the values first."""
    lines = [_FENCE]
    for each in fields:
        if each.long:
            continue
        # A string of JSON is one of TOML as well, DEL apart.
        value = json.dumps(values[each.name], ensure_ascii=False).replace("\x7f", "\\u007f")
        about = ", ".join(each.choices) or each.hint
        lines.append(f"{each.name} = {value}  # {about}" if about else f"{each.name} = {value}")
    lines.append(_FENCE)
    for place, each in enumerate(each for each in fields if each.long):
        if place:
            lines += ["", f"{_FENCE} {each.label}"]
        lines.append(values[each.name])
    return "\n".join(lines) + "\n"


def read_form(fields: Sequence[FormField], text: str) -> dict[str, str]:
    """Return the values in an edited text by field name; a removed field is empty.

    Raises :class:`BacklogInvalid`, which says what cannot be read.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    fences = [place for place, line in enumerate(lines) if line.rstrip() == _FENCE]
    if len(fences) < 2 or any(line.strip() for line in lines[: fences[0]]):
        raise BacklogInvalid("The short fields must be at the top, between two lines of +++.")
    try:
        front = tomllib.loads("\n".join(lines[fences[0] + 1 : fences[1]]))
    except tomllib.TOMLDecodeError as error:
        raise BacklogInvalid(f"The lines between the +++ are not TOML: {error}.") from error
    short = [each.name for each in fields if not each.long]
    strange = sorted(set(front) - set(short))
    if strange:
        raise BacklogInvalid(f"There is no field {strange[0]!r}; there is {', '.join(short)}.")
    values = {name: _plain(front.get(name, "")) for name in short}
    return values | _texts(fields, lines[fences[1] + 1 :])


def _texts(fields: Sequence[FormField], lines: Sequence[str]) -> dict[str, str]:
    long = [each for each in fields if each.long]
    if not long:
        return {}
    labels = {f"{_FENCE} {each.label}": each.name for each in long[1:]}
    lines_by_name: dict[str, list[str]] = {each.name: [] for each in long}
    current = long[0].name
    for line in lines:
        name = labels.get(line.rstrip())
        if name is not None:
            current = name
        else:
            lines_by_name[current].append(line)
    return {name: "\n".join(part).strip("\n") for name, part in lines_by_name.items()}


def _plain(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(_plain(each) for each in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
