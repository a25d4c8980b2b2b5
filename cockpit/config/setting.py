"""What one key of the configuration is: its type and bounds, in code and in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec

WORDS = Annotated[str, msgspec.Meta(min_length=1, max_length=2000)]
"""A text that says something."""


class OutOfBounds(ValueError):
    """A value that its key does not allow."""


@dataclass(frozen=True, slots=True)
class Key:
    """One key. ``allowed`` says in words what ``type`` enforces.

    ``field`` is where the value goes in the runtime's settings (``limits.max_waves``); it is empty
    for what is the screen's. ``project`` tells what a project file may do: ``any`` value, only a
    ``lower`` or a ``higher`` one than the layers before it, or ``none``. ``env`` is empty for what
    only a file can set.
    """

    table: str
    name: str
    field: str
    type: Any
    allowed: str
    default: Any
    env: str
    purpose: str
    project: Literal["any", "lower", "higher", "none"] = "any"

    @property
    def full(self) -> str:
        """As errors name it: ``[model] timeout_s``."""
        return f"[{self.table}] {self.name}"

    def read(self, value: object, *, written_as_text: bool = False) -> Any:
        """The checked value. Text from the environment is converted, a file's value is not.

        Raises :class:`OutOfBounds`, whose words say what is allowed.
        """
        try:
            read = msgspec.convert(value, self.type, strict=not written_as_text)
        except msgspec.ValidationError as error:
            raise OutOfBounds(f"it must be {self.allowed}") from error
        if isinstance(read, float) and not math.isfinite(read):
            raise OutOfBounds(f"it must be {self.allowed}")
        return read


def whole(least: int, most: int) -> Any:
    """The type of a whole number in these bounds, both included."""
    return Annotated[int, msgspec.Meta(ge=least, le=most)]


def number(least: float, most: float) -> Any:
    """The type of a number in these bounds, both included."""
    return Annotated[float, msgspec.Meta(ge=least, le=most)]
