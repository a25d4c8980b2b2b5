"""Find the tools of a file by its syntax tree: names, docstrings, signatures, and the decorator's arguments.

Nothing is imported or run. What the tree cannot tell for certain is refused: a decorator whose arguments are
computed, a name that is bound twice, a ``tool`` that is not cockpit's. See ``docs/reference/tools.md``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from cockpit.act.own_tools.docstrings import parse_docstring
from cockpit.act.own_tools.tool_files import ToolFile, ToolFileRefused, parse_python

MAX_TIMEOUT_S = 600
MAX_TOOLS = 32
"""The most tools of one file."""
MAX_PARAMETERS = 32
MAX_DESCRIPTION = 1_000
NAME = re.compile(r"[a-z][a-z0-9_]{1,47}", re.ASCII)
"""Names of tools and their aliases."""

_KEYWORDS = ("name", "description", "aliases", "effects", "timeout_s")


class Parameter(Struct, frozen=True):
    """A parameter as the source declares it."""

    name: str
    annotation: str
    """The type hint as it is written."""
    required: bool
    description: str = ""


class DeclaredTool(Struct, frozen=True):
    """A tool as its source declares it."""

    name: str
    function: str
    line: int
    description: str
    parameters: tuple[Parameter, ...]
    aliases: tuple[str, ...] = ()
    effects: str = "writes"
    """``reads`` or ``writes``: what the author says."""
    timeout_s: int = 60

    @property
    def signature(self) -> str:
        """The tool's parameters in one line."""
        shown = ", ".join(
            f"{each.name}: {each.annotation}{'' if each.required else ' = …'}"
            for each in self.parameters
        )
        return f"{self.name}({shown})"


def find_tools(file: ToolFile) -> tuple[DeclaredTool, ...]:
    """Return the tools that ``file`` declares, in their order; none for a file without tools.

    Raises :class:`ToolFileRefused`, whose message names the line.
    """
    try:
        return _find_tools(file)
    except RecursionError as error:
        raise ToolFileRefused(f"{file.name}: its code is nested too deeply.") from error


def _find_tools(file: ToolFile) -> tuple[DeclaredTool, ...]:
    tree = parse_python(file.name, file.files[file.name])
    marks = _Marks(file.name, tree)
    if not marks.names:
        return ()
    marks.refuse_other_bindings()
    tools: list[DeclaredTool] = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            tool = marks.read(node)
            if tool is not None:
                tools.append(tool)
    marks.refuse_hidden(tree)
    if len(tools) > MAX_TOOLS:
        raise ToolFileRefused(f"{file.name}: it declares more than {MAX_TOOLS} tools.")
    names = [name for tool in tools for name in (tool.name, *tool.aliases)]
    for name in names:
        if names.count(name) > 1:
            raise ToolFileRefused(f"{file.name}: the name {name!r} is given to two tools.")
    return tuple(tools)


class _Marks:
    """The names under which a file has cockpit's decorator."""

    def __init__(self, file: str, tree: ast.Module) -> None:
        self._file = file
        self._tree = tree
        self.names: set[str] = set()
        """Names of the decorator itself, and of the module as ``cockpit.``."""
        self._imports: list[ast.AST] = []
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and node.module == "cockpit" and not node.level:
                for alias in node.names:
                    if alias.name == "tool":
                        self.names.add(alias.asname or "tool")
                        self._imports.append(node)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name == "cockpit":
                        self.names.add(f"{alias.asname or 'cockpit'}.")
                        self._imports.append(node)

    def refuse_other_bindings(self) -> None:
        """Refuse a file in which such a name means anything else, anywhere."""
        plain = {name.rstrip(".") for name in self.names}
        for node in ast.walk(self._tree):
            if node in self._imports:
                continue
            for name, line in _bound_names(node):
                if name in plain or name == "*":
                    what = "a star import may bind" if name == "*" else "another statement binds"
                    raise self._refuse(
                        line, f"{what} {sorted(plain)[0] if name == '*' else name!r} as well"
                    )

    def read(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> DeclaredTool | None:
        """Return the tool that a function of the module is, or None."""
        marks = [each for each in node.decorator_list if self._is_mark(each)]
        if not marks:
            return None
        if len(node.decorator_list) > 1:
            raise self._refuse(
                node.lineno, f"{node.name} has other decorators than @tool; call them inside"
            )
        values = self._read_arguments(marks[0])
        name = str(values.get("name") or node.name)
        for each in (name, *values.get("aliases", ())):
            if NAME.fullmatch(each) is None:
                raise self._refuse(
                    node.lineno,
                    f"{each[:60]!r} is not a name of a tool: 2 to 48 lower-case letters, digits and _",
                )
        self._refuse_rebinding(node)
        docstring = parse_docstring(ast.get_docstring(node) or "")
        description = str(values.get("description") or docstring.summary).strip()
        if not description:
            raise self._refuse(
                node.lineno, f"{node.name} has no docstring; an agent needs one sentence about it"
            )
        return DeclaredTool(
            name=name,
            function=node.name,
            line=node.lineno,
            description=description[:MAX_DESCRIPTION],
            parameters=self._read_parameters(node, docstring.parameters),
            aliases=tuple(values.get("aliases", ())),
            effects=str(values.get("effects", "writes")),
            timeout_s=int(values.get("timeout_s", 60)),
        )

    def refuse_hidden(self, tree: ast.Module) -> None:
        """Refuse the decorator anywhere but on a function of the module."""
        top = {
            id(mark)
            for node in tree.body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            for mark in node.decorator_list
        }
        for node in ast.walk(tree):
            for mark in getattr(node, "decorator_list", ()):
                if id(mark) not in top and self._is_mark(mark):
                    raise self._refuse(
                        mark.lineno, "@tool is for functions of the module, not inside others"
                    )

    def _is_mark(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Call):
            node = node.func
        if isinstance(node, ast.Name):
            return node.id in self.names
        return (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.attr == "tool"
            and f"{node.value.id}." in self.names
        )

    def _read_arguments(self, mark: ast.expr) -> dict[str, Any]:
        if not isinstance(mark, ast.Call):
            return {}
        if mark.args:
            raise self._refuse(mark.lineno, "@tool takes named arguments only")
        values: dict[str, Any] = {}
        for keyword in mark.keywords:
            if keyword.arg not in _KEYWORDS:
                raise self._refuse(
                    mark.lineno,
                    f"@tool has no argument {keyword.arg or '**'!r}; it takes {', '.join(_KEYWORDS)}",
                )
            try:
                value = ast.literal_eval(keyword.value)
            except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                raise self._refuse(
                    keyword.value.lineno,
                    f"{keyword.arg} is computed; write its value, because cockpit reads it without running"
                    " the file",
                ) from None
            self._check_argument(keyword.arg, value, mark.lineno)
            values[keyword.arg] = value
        return values

    def _check_argument(self, name: str, value: object, line: int) -> None:
        match name:
            case "name" | "description":
                valid, wanted = isinstance(value, str), "a text"
            case "aliases":
                valid = isinstance(value, list | tuple) and all(
                    isinstance(each, str) for each in value
                )
                wanted = "a list of names"
            case "effects":
                valid, wanted = value in ("reads", "writes"), "'reads' or 'writes'"
            case _:
                valid = type(value) is int and 1 <= value <= MAX_TIMEOUT_S
                wanted = f"a whole number of seconds from 1 to {MAX_TIMEOUT_S}"
        if not valid:
            raise self._refuse(line, f"{name} must be {wanted}")

    def _read_parameters(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, descriptions: dict[str, str]
    ) -> tuple[Parameter, ...]:
        arguments = node.args
        if arguments.vararg or arguments.kwarg or arguments.posonlyargs:
            raise self._refuse(
                node.lineno, f"{node.name} takes * or positional-only parameters; name each one"
            )
        plain = [None] * (len(arguments.args) - len(arguments.defaults)) + list(arguments.defaults)
        pairs = [
            *zip(arguments.args, plain, strict=True),
            *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
        ]
        if len(pairs) > MAX_PARAMETERS:
            raise self._refuse(
                node.lineno, f"{node.name} has more than {MAX_PARAMETERS} parameters"
            )
        parameters = []
        for argument, default in pairs:
            if argument.annotation is None:
                raise self._refuse(
                    argument.lineno,
                    f"parameter {argument.arg!r} of {node.name} has no type hint; its schema needs one",
                )
            if argument.arg.startswith("_"):
                raise self._refuse(argument.lineno, f"parameter {argument.arg!r} begins with _")
            parameters.append(
                Parameter(
                    argument.arg,
                    ast.unparse(argument.annotation),
                    default is None,
                    descriptions.get(argument.arg, "")[:MAX_DESCRIPTION],
                )
            )
        return tuple(parameters)

    def _refuse_rebinding(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Refuse a tool whose name another statement of the file binds: it would not be what was shown."""
        for node in ast.walk(self._tree):
            if node is function:
                continue
            for name, line in _bound_names(node):
                if name == function.name and _is_module_level(self._tree, node):
                    raise self._refuse(line, f"the name {function.name!r} is bound a second time")

    def _refuse(self, line: int, problem: str) -> ToolFileRefused:
        return ToolFileRefused(f"{self._file} line {line}: {problem}.")


def _is_module_level(tree: ast.Module, node: ast.AST) -> bool:
    """Whether a statement or expression runs in the module's own scope."""
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        each = waiting.pop()
        if each is node:
            return True
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            # `global NAME` inside a function binds a name of the module.
            if isinstance(node, ast.Global) and any(inner is node for inner in ast.walk(each)):
                return True
            continue
        waiting += ast.iter_child_nodes(each)
    return False


def _bound_names(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Return the names that a node binds or deletes, each with its line; ``*`` for a star import."""
    line = getattr(node, "lineno", 0)
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name, line
        case ast.Name(ctx=ast.Store() | ast.Del()):
            yield node.id, line
        case ast.Import() | ast.ImportFrom():
            for alias in node.names:
                yield (alias.asname or alias.name.split(".")[0]), line
        case ast.arg():
            yield node.arg, line
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
            yield name, line
        case ast.MatchStar(name=str(name)):
            yield name, line
        case ast.MatchMapping(rest=str(name)):
            yield name, line
        case ast.Global() | ast.Nonlocal():
            for name in node.names:
                yield name, line
        case _:
            return
