"""The routes of the HTTP API as Markdown, for ``docs/reference/http.md``, from the OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cockpit.api.application import DOCUMENT, OPERATIONS
from cockpit.api.operations import Operation
from cockpit.api.problem_documents import STATUS_CODES


def routes_markdown() -> str:
    """Return every route with its scope, parameters and statuses, by topic, and the codes of errors."""
    topics: dict[str, list[str]] = {}
    for each in OPERATIONS:
        topics.setdefault(each.topic, []).append(_row(each))
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


def _row(operation: Operation) -> str:
    cells = (
        f"`{operation.method} {operation.path}`",
        f"`{operation.scope}`" if operation.scope else "none",
        operation.summary,
        ", ".join(_takes(operation.document)) or "–",
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _takes(operation: Mapping[str, Any]) -> Iterator[str]:
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
