"""One setting: its type and bounds, in code and in text."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec

TEXT = Annotated[str, msgspec.Meta(min_length=1, max_length=2000)]
"""The type of a text of 1 to 2,000 characters."""


NAMES = tuple[TEXT, ...]
"""The type of a list of texts."""
CHANNELS = tuple[
    Annotated[str, msgspec.Meta(pattern="^(bell|desktop|(ntfy:)?https?://.+)$", max_length=2000)],
    ...,
]
"""The type of a list of channels for notices."""
COMMANDS = TEXT | NAMES
"""The type of a list of commands; one text is a list of one."""
VARIABLES = dict[Annotated[str, msgspec.Meta(pattern="^[A-Za-z_][A-Za-z0-9_]{0,99}$")], TEXT]
"""The type of a table of variables."""


class OutOfBounds(ValueError):
    """A value that its setting does not allow."""


class Key(msgspec.Struct, frozen=True):
    """One setting. Listed in ``docs/reference/configuration.md``."""

    table: str
    name: str
    field: str
    """Path of the value in the settings objects, as in ``limits.max_waves``; empty for the screen's."""
    type: Any
    """The type that msgspec checks and converts to."""
    allowed: str
    """The allowed values in text; ``type`` enforces them."""
    default: Any
    env: str
    """The environment variable; empty for a setting that only files can set."""
    purpose: str
    project: Literal["neutral", "fills", "lower", "higher", "none"]
    """What a project's file may set: any value, as it protects nothing; any where you have set none; only a
    lower or a higher one than the layers before it; or no value but the default."""
    order: tuple[str, ...] = ()
    """The values of a setting that is not a number, lowest first."""

    @property
    def full(self) -> str:
        """The name in errors and documents: ``[model] timeout_s``."""
        return f"[{self.table}] {self.name}"

    def rank(self, value: Any) -> Any:
        """Return ``value`` as it compares with others of this setting."""
        return self.order.index(value) if self.order else value

    def read(self, value: object, *, written_as_text: bool = False) -> Any:
        """Return the checked value. Text from the environment is converted, a file's value is not.

        Raises :class:`OutOfBounds`, whose message says what is allowed.
        """
        try:
            checked = msgspec.convert(value, self.type, strict=not written_as_text)
        except msgspec.ValidationError as error:
            raise OutOfBounds(f"it must be {self.allowed}") from error
        if isinstance(checked, float) and not math.isfinite(checked):
            raise OutOfBounds(f"it must be {self.allowed}")
        if self.type is COMMANDS and isinstance(checked, str):
            return (checked,)
        return checked


def whole_number(least: int, most: int) -> Any:
    """Return the type of a whole number from ``least`` to ``most``."""
    return Annotated[int, msgspec.Meta(ge=least, le=most)]


def number(least: float, most: float) -> Any:
    """Return the type of a number from ``least`` to ``most``."""
    return Annotated[float, msgspec.Meta(ge=least, le=most)]


def setting(
    table: str,
    name: str,
    *,
    type: Any,  # noqa: A002 - as msgspec calls it
    purpose: str,
    project: Literal["neutral", "fills", "lower", "higher", "none"],
    default: Any = None,
    field: str | None = None,
    allowed: str = "",
    unit: str = "",
    env: str | None = None,
    order: tuple[str, ...] = (),
) -> Key:
    """Return a setting; what is left out follows from the rest.

    ``field`` is ``table.name``, the variable ``COCKPIT_NAME``, and what is allowed is said by the type;
    ``unit`` is that of a number.
    """
    variable = name if name.isupper() else f"COCKPIT_{name.upper()}"
    return Key(
        table,
        name,
        f"{table}.{name}" if field is None else field,
        type,
        allowed or _describe_type(type, f" of {unit}" if unit else ""),
        default,
        variable if env is None else env,
        purpose,
        project,
        order,
    )


def _describe_type(type_: Any, unit: str) -> str:
    """Return the values of a type in words."""
    if type_ is bool:
        return "true or false"
    if get_origin(type_) is Literal:
        return f"one of {', '.join(get_args(type_))}"
    kind, bounds = get_args(type_)
    number_word = "whole number" if kind is int else "number"
    return f"a {number_word}{unit} from {bounds.ge:.15g} to {bounds.le:.15g}"
