"""The process in the sandbox that imports a tool's file: it describes its tools, or calls one of them.

It is started by its path and imports nothing of cockpit but the decorator. The request comes as JSON on
standard input, with the source of every module that may be loaded from the tool's folder; so what is imported
is what was digested, whatever is on the disk by then. The answer is JSON on standard output, which the tool
itself cannot print to by accident: its prints go to standard error. See ``docs/reference/tools.md``.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import linecache
import os
import sys
from math import isfinite
from types import ModuleType
from typing import Any, BinaryIO

MODULE = "cockpit_tool_file"
MOST_YIELDED = 100_000
"""Values of a generator that a result may have."""


class SourceFinder:
    """Finds the modules whose sources came with the request, and loads them.

    It has the methods of ``importlib.abc`` and not its classes, which take as long to import as all else.
    """

    def __init__(self, folder: str, main: str, sources: dict[str, str]) -> None:
        self._places: dict[str, tuple[str, str, bool]] = {}
        for path, source in sources.items():
            place = os.path.join(folder, path)  # noqa: PTH118 - pathlib is not loaded here
            linecache.cache[place] = (len(source), None, source.splitlines(True), place)
            if path == main:
                self._places[MODULE] = (place, source, False)
                continue
            is_package = path.endswith("/__init__.py")
            stem = path.removesuffix("/__init__.py") if is_package else path.removesuffix(".py")
            self._places[stem.replace("/", ".")] = (place, source, is_package)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname not in self._places:
            return None
        place, _, is_package = self._places[fullname]
        loader: Any = self
        spec = importlib.util.spec_from_loader(
            fullname, loader, origin=place, is_package=is_package
        )
        if spec is not None:
            spec.has_location = True
        return spec

    def get_source(self, fullname: str) -> str:
        return self._places[fullname][1]

    def is_package(self, fullname: str) -> bool:
        return self._places[fullname][2]

    def get_code(self, fullname: str) -> Any:
        place, source, _ = self._places[fullname]
        return compile(source, place, "exec", dont_inherit=True)

    def create_module(self, spec: Any) -> None:
        return None  # as for any module

    def exec_module(self, module: ModuleType) -> None:
        exec(self.get_code(module.__name__), module.__dict__)  # noqa: S102 - that is what it is for


def load_decorator() -> None:
    """Make ``from cockpit import tool`` work where cockpit itself is not installed."""
    if importlib.util.find_spec("cockpit") is not None:
        return
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(here))))  # noqa: PTH120


def describe(module: ModuleType) -> list[dict[str, Any]]:
    """Return what each tool of the module says of itself, with the JSON Schema of its arguments."""
    import inspect

    described = []
    for attribute, value in vars(module).items():
        mark = getattr(value, "__cockpit_tool__", None)
        if mark is None or not inspect.isfunction(value):
            continue
        name, description, aliases, effects, timeout_s = mark
        described.append(
            {
                "function": attribute,
                "name": name or attribute,
                "description": description or inspect.getdoc(value) or "",
                "aliases": list(aliases),
                "effects": effects,
                "timeout_s": timeout_s,
                "schema": _describe_arguments(value, attribute),
            }
        )
    return described


def _describe_arguments(function: Any, name: str) -> Any:
    from pydantic import TypeAdapter

    try:
        return TypeAdapter(function).json_schema()
    except Exception as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else ""
        raise TypeError(
            f"the type hints of {name} have no JSON Schema: {type(error).__name__}: {first}"
        ) from error


def call(module: ModuleType, function: str, arguments: dict[str, Any]) -> Any:
    """Call the function with arguments that fit its type hints; returns its result as a JSON value."""
    import inspect

    from pydantic import validate_call
    from pydantic_core import to_jsonable_python

    result = validate_call(getattr(module, function))(**arguments)
    if inspect.isawaitable(result) or inspect.isasyncgen(result):
        import asyncio

        result = asyncio.run(_wait(result))
    elif inspect.isgenerator(result):
        from itertools import islice

        result = _bound(list(islice(result, MOST_YIELDED + 1)))
    return _as_strict_json(to_jsonable_python(result, inf_nan_mode="constants"))


async def _wait(result: Any) -> Any:
    """Wait for a coroutine, or collect what an asynchronous generator yields."""
    if not hasattr(result, "__aiter__"):
        return await result
    values = []
    async for value in result:
        values.append(value)
        if len(values) > MOST_YIELDED:
            break
    return _bound(values)


def _bound(values: list[Any]) -> list[Any]:
    if len(values) > MOST_YIELDED:
        raise ValueError(f"it yields more than {MOST_YIELDED} values; return fewer")
    return values


def _as_strict_json(value: Any) -> Any:
    """Return a value without what JSON has no word for: NaN and infinities as texts, half characters as ?."""
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_as_strict_json(each) for each in value]
    if isinstance(value, dict):
        return {_as_strict_json(key): _as_strict_json(each) for key, each in value.items()}
    return value


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a request: ``result``, or ``error`` in words for the agent."""
    import traceback

    load_decorator()
    finder = SourceFinder(request["folder"], request["main"], request["sources"])
    sys.meta_path.insert(0, finder)
    try:
        module = importlib.import_module(MODULE)
    except BaseException as error:
        return {"error": f"It cannot be loaded: {explain(error)}", "trace": traceback.format_exc()}
    try:
        if request["mode"] == "describe":
            return {"result": describe(module)}
        if request["mode"] == "suite":
            from cockpit.act.own_tools.run_suite import run_suite

            return {"result": run_suite(module, request["name"], request["test"])}
        return {"result": call(module, request["function"], request["arguments"])}
    except BaseException as error:
        if problems := list_problems(error):
            return {"error": f"The arguments do not fit: {'; '.join(problems)}."}
        return {"error": explain(error), "trace": traceback.format_exc(), **list_needs(error)}


def list_needs(error: BaseException) -> dict[str, list[str]]:
    """Return the scope items that a tool says it lacks; nothing for any other error."""
    marks = sys.modules.get("cockpit.act.own_tools.decorator")
    if marks is None or not isinstance(error, marks.MissingInput):
        return {}
    return {"needs": [str(item)[:500] for item in error.items[:8]]}


def list_problems(error: BaseException) -> list[str]:
    """Return what pydantic says of arguments that do not fit; nothing for any other error.

    pydantic is not loaded for it: a run of tests does without.
    """
    core = sys.modules.get("pydantic_core")
    if core is None or not isinstance(error, core.ValidationError):
        return []
    return [
        f"{'.'.join(map(str, each['loc'])) or 'arguments'}: {each['msg']}"
        for each in error.errors(include_url=False, include_context=False)[:8]
    ]


def explain(error: BaseException) -> str:
    """Return an exception in one line."""
    return f"{type(error).__name__}: {error}"[:2000]


def main() -> int:
    """Serve one request."""
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    output: BinaryIO = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    request = json.loads(sys.stdin.buffer.read())
    first = os.getpid()
    body = answer(request)
    if os.getpid() != first:
        os._exit(0)  # a copy of the process that the tool left behind: one call has one answer
    try:
        text = json.dumps(body)
    except (TypeError, ValueError, RecursionError) as error:
        text = json.dumps({"error": f"Its result is not a JSON value: {explain(error)}"})
    sys.stdout.flush()
    output.write(text.encode())
    output.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
