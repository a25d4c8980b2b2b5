"""A form as a text for the person's editor: TOML front matter, then Markdown, and back.

The short fields stand between two lines of ``+++``; the first long field is the text below, each
further one follows under a line ``+++ its label``.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence

from cockpit.store.errors import CockpitError
from widgets.clean import clean
from widgets.work_views import FieldView

_FENCE = "+++"


class FormInvalid(CockpitError):
    """What was written is no form; nothing was kept."""

    code = "usage"


def written(fields: Sequence[FieldView], values: Mapping[str, str]) -> str:
    """The form's text for the editor."""
    lines = [_FENCE]
    for each in fields:
        if each.kind == "text":
            continue
        said = f"{each.name} = {json.dumps(clean(values[each.name], newlines=False), ensure_ascii=False)}"
        about = ", ".join(each.choices) or each.hint
        lines.append(f"{said}  # {clean(about, newlines=False)}" if about else said)
    lines.append(_FENCE)
    for place, each in enumerate(each for each in fields if each.kind == "text"):
        if place:
            lines += ["", f"{_FENCE} {each.label}"]
        lines.append(clean(values[each.name]))
    return "\n".join(lines) + "\n"


def read(fields: Sequence[FieldView], text: str) -> dict[str, str]:
    """The values in a text that the person edited; a field that was taken out is empty.

    Raises :class:`FormInvalid`, which says what cannot be read.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    fences = [place for place, line in enumerate(lines) if line.rstrip() == _FENCE]
    if len(fences) < 2 or any(line.strip() for line in lines[: fences[0]]):
        raise FormInvalid("The short fields stand at the top, between two lines of +++.")
    try:
        front = tomllib.loads("\n".join(lines[fences[0] + 1 : fences[1]]))
    except tomllib.TOMLDecodeError as error:
        raise FormInvalid(f"The lines between the +++ are no TOML: {error}.") from error
    short = {each.name for each in fields if each.kind != "text"}
    strange = sorted(set(front) - short)
    if strange:
        raise FormInvalid(f"There is no field {strange[0]}; there is {', '.join(sorted(short))}.")
    found = {name: _plain(front.get(name, "")) for name in short}
    return found | _texts(fields, lines[fences[1] + 1 :])


def _texts(fields: Sequence[FieldView], lines: Sequence[str]) -> dict[str, str]:
    long = [each for each in fields if each.kind == "text"]
    if not long:
        return {}
    labels = {f"{_FENCE} {each.label}": each.name for each in long[1:]}
    found: dict[str, list[str]] = {each.name: [] for each in long}
    here = long[0].name
    for line in lines:
        name = labels.get(line.rstrip())
        if name is not None:
            here = name
        else:
            found[here].append(line)
    return {name: "\n".join(part).strip("\n") for name, part in found.items()}


def _plain(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(_plain(each) for each in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
