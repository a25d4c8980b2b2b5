"""Input that the user changed before approving it, with its masked secrets put back in place.

A store holds no secrets, so the user edits text in which each is ``[masked:KIND]``. The process that waits
has the agent's own text and puts them back: they stay where they were, or go all together. See
``docs/reference/agents.md``, permissions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from cockpit.core.errors import CockpitError
from cockpit.core.secrets import mask_value

_SIGN = re.compile(r"\[masked:[a-z0-9-]+\]")


class InputNotChanged(CockpitError):
    """The user's text cannot replace the agent's; the message says why and what to do."""

    code = "not_editable"


def change_input(body: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Return the input of a permission's ``body`` with the user's ``text``, still masked.

    Raises :class:`InputNotChanged`.
    """
    shown: dict[str, Any] = dict(body["input"])
    argument = str(body.get("edit_argument", ""))
    if argument:
        changed = {**shown, argument: text.rstrip("\n") if argument != "content" else text}
    else:
        try:
            changed = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputNotChanged(f"This is not JSON: {error}. Nothing was changed.") from error
        if not isinstance(changed, dict):
            raise InputNotChanged("The input is a JSON object. Nothing was changed.")
    if mask_value(changed) != changed:
        raise InputNotChanged(
            "The changed text has what looks like a secret. cockpit stores none, so it cannot be approved"
            " here. Name an environment variable instead, or answer in the agent's own terminal."
        )
    restore_input(shown, shown, changed)
    return changed


def editable_text(body: Mapping[str, Any]) -> tuple[str, str]:
    """Return the text of a permission's ``body`` that the user may change, and the editor's suffix.

    Raises :class:`InputNotChanged`.
    """
    if not body.get("editable"):
        raise InputNotChanged(
            "This agent takes no changed input. Approve it, or reject it and say what to do instead."
        )
    argument = str(body.get("edit_argument", ""))
    shown = body["input"]
    if argument:
        return str(shown[argument]), str(body.get("edit_suffix", ".txt"))
    return json.dumps(shown, ensure_ascii=False, indent=2) + "\n", ".json"


def restore_input(original: Any, shown: Any, changed: Any) -> Any:
    """Return ``changed`` with each masked secret as it is in ``original``, whose masked form is ``shown``.

    Raises :class:`InputNotChanged` where a sign stands that was not shown there.
    """
    if isinstance(changed, str):
        return _restore_text(original, shown, changed)
    if isinstance(changed, dict):
        before = original if isinstance(original, Mapping) else {}
        seen = shown if isinstance(shown, Mapping) else {}
        return {
            name: restore_input(before.get(name), seen.get(name), each)
            for name, each in changed.items()
        }
    if isinstance(changed, list):
        return [
            restore_input(_at(original, place), _at(shown, place), each)
            for place, each in enumerate(changed)
        ]
    return changed


def _at(value: Any, place: int) -> Any:
    return value[place] if isinstance(value, list | tuple) and place < len(value) else None


def _restore_text(original: Any, shown: Any, changed: str) -> str:
    signs = _SIGN.findall(changed)
    if not signs:
        return changed
    if not isinstance(original, str) or not isinstance(shown, str) or _SIGN.findall(shown) != signs:
        raise InputNotChanged(
            "Each [masked:…] stands for a secret of the agent's input. Leave all of them where they are, or"
            " remove all of them. Nothing was changed."
        )
    secrets = _align(original, _SIGN.split(shown))
    pieces = _SIGN.split(changed)
    return pieces[0] + "".join(
        secret + piece for secret, piece in zip(secrets, pieces[1:], strict=True)
    )


def _align(original: str, pieces: list[str]) -> list[str]:
    """Return what stands between ``pieces`` in ``original``, in order."""
    secrets: list[str] = []
    place = len(pieces[0])
    if not original.startswith(pieces[0]) or not original.endswith(pieces[-1]):
        raise InputNotChanged("The agent's input is no longer what was shown. Nothing was changed.")
    end = len(original) - len(pieces[-1])
    for number, piece in enumerate(pieces[1:], 1):
        at = end if number == len(pieces) - 1 else original.find(piece, place + 1, end)
        if at < place:
            raise InputNotChanged(
                "The agent's input is no longer what was shown. Nothing was changed."
            )
        secrets.append(original[place:at])
        place = at + len(piece)
    return secrets
