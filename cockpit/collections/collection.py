"""What a collection is: rows of one kind, described once for every face.

The command line makes a command group of it, the screen a list, HTTP and MCP a list and a row that are read.
Specified in ``docs/reference/collections.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from msgspec import Struct, to_builtins

from cockpit.access import user_presence
from cockpit.access.principals import Caller
from cockpit.access.token_scopes import READ, NotAllowed
from cockpit.core.clock import Clock
from cockpit.core.errors import CockpitError, NotFound
from cockpit.core.project_paths import ProjectPaths
from cockpit.store.db.transaction import Tx

# A screen knows its lists before any is open: the readers of their rows are imported where they are used.
if TYPE_CHECKING:
    from cockpit.loop.runtime_settings import RuntimeSettings

Row = TypeVar("Row")


class FilterInvalid(CockpitError):
    """A filter that the collection does not have, or a value that it does not take."""

    code = "usage"


class View(Struct, frozen=True):
    """One project as a collection reads it, at one moment."""

    place: ProjectPaths
    connection: sqlite3.Connection | None
    """None before anything was recorded."""
    clock: Clock
    load_settings: Callable[[], RuntimeSettings]
    """Reads the settings, for the few collections that depend on them. Raises ``ConfigInvalid``."""
    user_dir: Path
    """The user's own configuration folder."""
    session_id: str = ""
    """The session that the user looks at; empty without one."""

    @property
    def settings(self) -> RuntimeSettings:
        return self.load_settings()


def open_records(view: View) -> sqlite3.Connection:
    """Return the store of a project that must have one. Raises ``NotFound``."""
    if view.connection is None:
        raise NotFound(
            f"Nothing was recorded in {view.place.home} yet. Start with `cockpit run TASK`, or with"
            " `cockpit tasks add TITLE` and `cockpit work`."
        )
    return view.connection


class Listed(Struct, Generic[Row], frozen=True):
    """Rows, and sentences about those that are not there."""

    rows: Sequence[Row]
    remarks: Sequence[str] = ()


class Part(Struct, frozen=True):
    """A part of what is said of a row: a sentence, fields, or text of others below a heading."""

    heading: str = ""
    """With fields, what they are; with a text, where it is from. A text without it is cockpit's own."""
    fields: Sequence[tuple[str, str]] = ()
    """Names and values; empty values are left out."""
    text: str = ""


class Field(Struct, frozen=True):
    """A value that narrows a list, or chooses what is shown of a row."""

    name: str
    help: str
    flag: str = ""
    """Its option where that is not the name."""
    kind: Literal["flag", "text", "number"] = "text"
    choices: Sequence[str] = ()
    default: Any = None
    metavar: str | None = None
    least: int = 1
    """The smallest number."""
    most: int = 10_000
    """The largest number."""
    of_row: bool = False
    """Whether it says where a row is, too."""
    key: str = ""
    """The key that switches a flag in the list of the screen; empty: the screen has its default."""

    def check(self, value: Any) -> None:
        """Raise :class:`FilterInvalid` for a value that it does not take."""
        if self.kind == "flag":
            is_right = isinstance(value, bool)
        elif self.kind == "number":
            is_right = type(value) is int and self.least <= value <= self.most
        else:
            is_right = isinstance(value, str) and (not self.choices or value in self.choices)
        if not is_right:
            takes = {
                "flag": "true or false",
                "number": f"{self.least} to {self.most:,}",
                "text": "a text",
            }
            raise FilterInvalid(
                f"{self.name}: {value!r} is not {' or '.join(self.choices) or takes[self.kind]}."
            )


LIMIT = Field("limit", "List at most this many.", kind="number", default=50)
"""The filter that bounds rows."""


class Doing(Struct, frozen=True):
    """A verb as it is carried out: in one transaction, for a caller."""

    tx: Tx
    view: View
    caller: Caller
    text: str = ""
    """What was asked for: the text of the verb's :class:`NeededText`, or a reason."""

    @property
    def connection(self) -> sqlite3.Connection:
        return self.tx.connection


class NeededText(Struct, Generic[Row], frozen=True):
    """A text that a verb needs: an argument of its command, a field or a choice on the screen."""

    name: str
    """Its argument in usage, for example ``TEXT``."""
    question: str
    sample: str
    """One, for examples."""
    value: Callable[[Row], str] = lambda _: ""
    """What the field begins with."""
    choices: Callable[[Row, Sequence[Row]], Sequence[tuple[str, str, str]]] | None = None
    """Picks from rows of the list, each by text, words and note; None for a text of the user's own."""


class Verb(Struct, Generic[Row], frozen=True):
    """What can be done with a row.

    ``act`` does it to the row as it was shown, and returns what was done, as a sentence; it raises ``Stale``
    or the like for a row that says something else by now.
    """

    name: str
    title: str
    """A phrase that begins with a verb, for the palette and the help of the command."""
    act: Callable[[Doing, Row], str]
    key: str
    activity: str
    """The same as a noun, for refusals: ``approving a guard``."""
    takes: Callable[[Row], bool] = lambda _: True
    """Whether a row allows it now."""
    risk: Literal["low", "high"] = "low"
    """High: the whole row is shown first, and the second key counts only then."""
    question: str = ""
    """What the second key does, for example "withdraws the approval"; empty where one key is enough."""
    who: Literal["user", "present", "holder"] = "user"
    """The user alone; the user at a terminal or the holder of a token with ``scope``; or that holder."""
    scope: str = ""
    label: Callable[[Row], str] | None = None
    """What the footer calls it, where that is not its name."""
    is_enter: bool = False
    """Whether Enter does it."""
    help: str = ""
    """Further sentences for the help of the command."""
    has_reason: bool = False
    """Whether the command takes a reason."""
    needs: NeededText[Row] | None = None
    has_command: bool = True
    """False where another command does it too."""
    needs_session: bool = False
    """Whether it is about the session that the user looks at."""

    def words(self, row: Row) -> str:
        """Return what the footer calls the verb."""
        return self.label(row) if self.label is not None else self.name

    def require(self, caller: Caller) -> None:
        """Raise ``NotAllowed`` for a caller who may not do it."""
        if self.who == "user" and caller.kind != "person":
            raise NotAllowed(
                f"{caller.namespace} may not do this: {self.activity} is for the user alone."
            )
        if self.who != "holder":
            user_presence.require_user(caller, self.activity)
        if self.scope:
            caller.require(self.scope, f"do this: {self.activity}")

    def carry_out(self, doing: Doing, row: Row) -> str:
        """Do it, for a caller who may. Raises ``NotAllowed`` and what ``act`` raises."""
        self.require(doing.caller)
        return self.act(doing, row)


class Collection(Struct, Generic[Row], frozen=True, kw_only=True):
    """Rows of one kind: how they are read, drawn, said and decided.

    The first column is a row's name, by which it is shown. ``read`` and ``find`` get the values of
    ``filters`` and ``details`` by name. They read in one transaction, on a thread of their own.
    """

    name: str
    """Its name for programs: ``task-types``."""
    command: str
    """Its command: ``debug events``."""
    title: str
    summary: str
    """One sentence for lists of commands."""
    help: str
    examples: Sequence[str]
    row: str
    """What one row is called in usage, for example ``NAME``."""
    sample: str
    """The name of a row, for examples."""
    columns: Mapping[str, Callable[[Row], str]] | Callable[[Sequence[Row]], Any]
    """A row's cells by heading, or a function that chooses them for the rows."""
    read: Callable[..., Sequence[Row] | Listed[Row]]
    none: str | Callable[..., str]
    """That there are no rows, and what makes some."""
    find: Callable[..., Row] | None = None
    """Finds a row by name, with what the list leaves out; default: among all rows. Raises ``NotFound``."""
    detail: Callable[[Row], Sequence[Part]] | None = None
    """What is said of a row; default: its document."""
    body: Callable[[Row], Any] = to_builtins
    """A row of the list as JSON."""
    document: Callable[[Row], Any] | None = None
    """The row that is shown as JSON; default: the body."""
    filters: Sequence[Field] = ()
    verbs: Sequence[Verb[Row]] = ()
    scope: str = READ
    """What its readers need; empty: it is of all projects, and for the user alone."""
    source: Literal["files", "store", "records"] = "store"
    """Where rows are: files alone; the store; or the store, and it is an error that there is none."""
    key: str = ""
    """The key that opens its list on the screen."""
    synonyms: str = ""
    state: Callable[[Row], str] | None = None
    """A row's state as an offer, for the sign on the screen; default: the cell STATE or STATUS."""
    line: Callable[[Row], str] | None = None
    """A row's line on the screen; default: the last cell."""
    about: Callable[[Row], str] | None = None
    """The line below; default: the cells between."""
    headline: Callable[[Sequence[Row]], str] | None = None
    """What the screen says of all rows."""
    words: Callable[[Row], str] | None = None
    """Text by which the screen's filter finds a row, beyond what is drawn."""
    reads_files: bool = False
    """Whether rows change without a row of the journal."""

    def list_rows(self, view: View, **given: Any) -> Listed[Row]:
        """Return the rows; filters that are not given have their defaults."""
        values = {each.name: each.default for each in self.filters} | given
        listed = self.read(view, **values)
        return listed if isinstance(listed, Listed) else Listed(listed)

    def read_filters(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of filters that a program gives. Raises :class:`FilterInvalid`."""
        filters = {each.name: each for each in self.filters}
        for name, value in given.items():
            if name not in filters:
                there = ", ".join(filters) or "none"
                raise FilterInvalid(f"{self.name} has no filter {name!r}. It has: {there}.")
            filters[name].check(value)
        return dict(given)

    def find_row(self, view: View, name: str, **where: Any) -> Row:
        """Return the row of that name; ``where`` are filters that say where. Raises ``NotFound``."""
        if self.find is not None:
            return self.find(view, name, **where)
        for row in self.list_rows(view).rows:
            if self.name_of(row) == name:
                return row
        raise NotFound(f"There is no {self.row.lower()} {name} in `cockpit {self.command}`.")

    def cells_of(self, rows: Sequence[Row]) -> Mapping[str, Callable[[Row], str]]:
        """Return the columns for these rows."""
        chosen: Mapping[str, Callable[[Row], str]] = (
            self.columns(rows) if callable(self.columns) else self.columns
        )
        return chosen

    def name_of(self, row: Row) -> str:
        """Return the name of a row: its first cell."""
        return next(iter(self.cells_of([row]).values()))(row)

    def show_row(self, row: Row) -> Any:
        """Return a row that is shown, as JSON."""
        return (self.document or self.body)(row)

    def describe(self, row: Row) -> Sequence[Part]:
        """Return what is said of a row."""
        if self.detail is not None:
            return self.detail(row)
        return (
            Part(fields=[(name, _value_text(value)) for name, value in self.show_row(row).items()]),
        )


def _value_text(value: Any) -> str:
    if value in (None, "", [], {}):
        return ""
    if isinstance(value, list):
        return ", ".join(map(_value_text, value))
    if isinstance(value, dict):
        return ", ".join(f"{name} {_value_text(member)}" for name, member in value.items())
    return str(value).lower() if isinstance(value, bool) else str(value)
