"""The process in the sandbox that imports a tool's file: it describes its tools, or calls one of them.

It is started by its path and imports nothing of cockpit but the decorator. The request comes as JSON on
standard input, with the source of every module that may be loaded from the tool's folder; so what is imported
is what was digested, whatever is on the disk by then. The answer is JSON on standard output, which the tool
itself cannot print to by accident: its prints go to standard error. See ``docs/reference/tools.md``.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import json
import linecache
import os
import sys
from types import ModuleType
from typing import Any, BinaryIO

MODULE = "cockpit_tool_file"


class SourceFinder(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Finds the modules whose sources came with the request."""

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
        spec = importlib.util.spec_from_loader(fullname, self, origin=place, is_package=is_package)
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

    from pydantic import TypeAdapter

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
                "description": description,
                "aliases": list(aliases),
                "effects": effects,
                "timeout_s": timeout_s,
                "parameters": list(inspect.signature(value).parameters),
                "schema": TypeAdapter(value).json_schema(),
            }
        )
    return described


def call(module: ModuleType, function: str, arguments: dict[str, Any]) -> Any:
    """Call the function with arguments that fit its type hints; returns its result as a JSON value."""
    import inspect

    from pydantic import validate_call
    from pydantic_core import to_jsonable_python

    result = validate_call(getattr(module, function))(**arguments)
    if inspect.isawaitable(result):
        import asyncio

        async def wait() -> Any:
            return await result

        result = asyncio.run(wait())
    return to_jsonable_python(result, inf_nan_mode="strings")


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a request: ``result``, or ``error`` in words for the agent."""
    import traceback

    from pydantic import ValidationError

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
    except ValidationError as error:
        problems = [
            f"{'.'.join(map(str, each['loc'])) or 'arguments'}: {each['msg']}"
            for each in error.errors(include_url=False, include_context=False)[:8]
        ]
        return {"error": f"The arguments do not fit: {'; '.join(problems)}."}
    except BaseException as error:
        return {"error": explain(error), "trace": traceback.format_exc()}


def explain(error: BaseException) -> str:
    """Return an exception in one line."""
    return f"{type(error).__name__}: {error}"[:2000]


def main() -> int:
    """Serve one request."""
    output: BinaryIO = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    request = json.loads(sys.stdin.buffer.read())
    body = answer(request)
    try:
        text = json.dumps(body)
    except (TypeError, ValueError, RecursionError) as error:
        text = json.dumps({"error": f"Its result is no JSON value: {explain(error)}"})
    sys.stdout.flush()
    output.write(text.encode())
    output.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
