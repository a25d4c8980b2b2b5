"""A collection of the command line: ``cockpit NOUN`` lists rows, ``NOUN NAME`` shows one, ``NOUN VERB`` acts.

One description makes all three; the verbs are commands of the group. ``list`` and ``show`` may stand before
what they mean. A row that is called like a verb is shown by ``cockpit NOUN -- NAME``. Specified in
``docs/reference/commands.md``, collections.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import click
from msgspec import to_builtins

from cockpit.cli_options import AS_JSON
from cockpit.cli_options import examples as in_epilog
from cockpit.collections.collection import Listed
from cockpit.commands.terminal import format_table, json_text, output_width, say, show, show_json
from cockpit.core.errors import CockpitError, NotFound

Row = TypeVar("Row")
Columns = Mapping[str, Callable[[Row], str]]
Option = Callable[[Any], Any]
_SPOKEN = ("list", "show")
"""Words that other programs want before a list or a name; here they mean nothing of their own."""


class RowName(click.Argument):
    """The name of a row, which no verb of the group has in its usage."""

    def get_usage_pieces(self, ctx: click.Context) -> list[str]:
        return super().get_usage_pieces(ctx) if self in ctx.command.params else []


class CollectionGroup(click.Group, Generic[Row]):
    """A group that lists and shows its rows.

    ``read`` gets the values of ``filters`` and returns the rows, or :class:`Listed`. ``find`` gets a name and
    the values of ``details``, and raises ``NotFound``. ``columns`` are the cells of a row by heading, or a
    function that chooses them for the rows. ``body`` is a row as JSON, ``document`` the one that is
    shown; ``describe`` returns it in words. ``none`` says that there are no rows, and what makes some.
    """

    def __init__(
        self,
        name: str,
        *,
        help: str,  # noqa: A002 - as click calls it
        short_help: str,
        examples: Sequence[str],
        row: str,
        columns: Columns[Row] | Callable[[Sequence[Row]], Columns[Row]],
        read: Callable[..., Sequence[Row] | Listed[Row]],
        find: Callable[..., Row],
        none: str | Callable[..., str],
        describe: Callable[..., str] | None = None,
        body: Callable[[Row], Any] = to_builtins,
        document: Callable[..., Any] | None = None,
        filters: Sequence[Option] = (),
        details: Sequence[Option] = (),
    ) -> None:
        super().__init__(
            name, invoke_without_command=True, help=help, short_help=short_help,
            epilog=in_epilog(*examples), callback=lambda **_: None,
        )  # fmt: skip
        self._columns, self._read, self._find = columns, read, find
        self._none, self._body = none, body
        self._document = document or (lambda shown, **_: body(shown))
        self._describe = describe or (
            lambda shown, **given: _name_values(self._document(shown, **given))
        )
        self._filters = _add_options(self, filters)
        self._details = _add_options(self, details)
        click.argument("name", cls=RowName, metavar=f"[{row}]", required=False)(self)
        _add_options(self, (AS_JSON,))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] in _SPOKEN and args[0] not in self.commands:
            args = args[1:]
        if args and args[0] in self.commands:
            # The options are those of the list: a verb has its own.
            ctx._protected_args, ctx.args = args[:1], args[1:]
            return ctx.args
        if len(args) > 1 and not args[0].startswith("-") and not args[1].startswith("-"):
            raise click.exceptions.NoSuchCommand(args[0], possibilities=self.commands, ctx=ctx)
        ctx.allow_interspersed_args, ctx.allow_extra_args = True, False
        return click.Command.parse_args(self, ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        if ctx._protected_args:
            return super().invoke(ctx)
        with ctx:
            return self._answer(ctx)

    def _answer(self, ctx: click.Context) -> None:
        given = dict(ctx.params)
        name, as_json = given.pop("name"), given.pop("as_json")
        filters = {each: given[each] for each in self._filters}
        details = {each: given[each] for each in self._details}
        if name is None:
            for each in self.params:
                if each.name in details and each.name not in filters and details[each.name]:
                    raise click.UsageError(f"{each.opts[0]} is for one: name it.")
            self._list(as_json, filters)
            return
        try:
            shown = self._find(name, **details)
        except NotFound as error:
            near = self._find_nearest(name, filters)
            if not near:
                raise
            raise NotFound(f"{error} Did you mean {' or '.join(near)}?") from error
        if as_json:
            show_json(self._document(shown, **details))
        elif text := self._describe(shown, **details):
            show(text)

    def _list(self, as_json: bool, filters: Mapping[str, Any]) -> None:
        listed = self._listed(filters)
        if as_json:
            show_json([self._body(each) for each in listed.rows])
        elif listed.rows:
            columns = self._columns_of(listed)
            cells = [[cell(each) for cell in columns.values()] for each in listed.rows]
            show(format_table(list(columns), cells, width=output_width()))
        else:
            say(self._none(**filters) if callable(self._none) else self._none)
        for remark in listed.remarks:
            say(remark)

    def _listed(self, filters: Mapping[str, Any]) -> Listed[Row]:
        listed = self._read(**filters)
        return listed if isinstance(listed, Listed) else Listed(listed)

    def _columns_of(self, listed: Listed[Row]) -> Columns[Row]:
        return self._columns(listed.rows) if callable(self._columns) else self._columns

    def _find_nearest(self, name: str, filters: Mapping[str, Any]) -> list[str]:
        """Return the verbs, and the rows by their first cell, that are spelled nearly so."""
        try:
            listed = self._listed(filters)
        except CockpitError:
            listed = Listed(())
        cell = next(iter(self._columns_of(listed).values())) if listed.rows else str
        names = (*self.commands, *(cell(each) for each in listed.rows))
        return difflib.get_close_matches(name, names, n=2)


def limit_option(default: int, most: int = 10_000) -> Option:
    """Return the option ``--limit``, a filter that bounds the rows."""
    return click.option(
        "-n",
        "--limit",
        type=click.IntRange(1, most),
        default=default,
        show_default=True,
        help="List at most this many.",
    )


def _name_values(document: Mapping[str, Any]) -> str:
    return "\n".join(
        f"{name}: {value if isinstance(value, str) else json_text(value)}"
        for name, value in document.items()
        if value not in (None, "", [], {})
    )


def _add_options(command: click.Command, options: Sequence[Option]) -> list[str]:
    """Give a command the options that it has not, in their order; return the names of all their values."""
    names = []
    for option in options:
        given = click.Command("given")
        option(given)
        (parameter,) = given.params
        if parameter.name not in [each.name for each in command.params]:
            command.params.append(parameter)
        names.append(str(parameter.name))
    return names
