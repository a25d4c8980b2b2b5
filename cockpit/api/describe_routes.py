"""The routes of the HTTP API as Markdown, for ``docs/reference/http.md``, from the OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cockpit.api.application import DOCUMENT, ROUTERS, new_application
from cockpit.api.operation_document import SCOPE, build_document, operations
from cockpit.api.problem_documents import STATUS_CODES


def routes_markdown() -> str:
    """Return every route with its scope, parameters and statuses, by topic, and the codes of errors."""
    app = new_application()
    for router in ROUTERS:
        app.include_router(router)
    document = build_document(app.openapi)
    topics: dict[str, list[str]] = {}
    for path, method, operation in operations(document):
        topics.setdefault(operation["tags"][0], []).append(_row(path, method, operation))
    sections = [
        "\n".join(
            [
                f"### {topic[0].upper()}{topic[1:]}",
                "",
                "| route | scope | does | takes |",
                "| --- | --- | --- | --- |",
                *rows,
            ]
        )
        for topic, rows in topics.items()
    ]
    codes = "\n".join(
        f"| {status} | {', '.join(f'`{code}`' for code in named)} |"
        for status, named in STATUS_CODES.items()
    )
    return "\n\n".join(
        [
            "## Routes",
            f"`GET {DOCUMENT}` has the whole OpenAPI document, for any token. What is refused has the status"
            " of its code.",
            *sections,
            "## Codes",
            f"| status | codes |\n| --- | --- |\n{codes}",
        ]
    )


def _row(path: str, method: str, operation: dict[str, Any]) -> str:
    scope = f"`{operation[SCOPE]}`" if SCOPE in operation else "none"
    cells = (
        f"`{method.upper()} {path}`",
        scope,
        operation["summary"],
        ", ".join(_takes(operation)) or "–",
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _takes(operation: dict[str, Any]) -> Iterator[str]:
    for parameter in operation.get("parameters", ()):
        if parameter["in"] == "query":
            yield f"`?{parameter['name']}=`"
        elif parameter["in"] == "header":
            yield f"`{parameter['name']}`"
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    required = schema.get("required", ())
    for name in schema.get("properties", {}):
        yield f"`{name}`" if name in required else f"`{name}`?"
