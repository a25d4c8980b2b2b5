"""Read and write the messages that nearly every client on standard input sends.

The protocol is the SDK's to follow. But its models take most of a second and 40 MiB to load in every
client's server, so that plain messages are read here: well-formed, of the few methods that a server of
tools has, with nothing in them that needs the SDK's judgement. :func:`read_plain` returns None for any
other, and the SDK answers those. ``tests/mcp/test_mcp_plain_messages.py`` compares the answers of both.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from msgspec import Struct

from cockpit import __version__
from cockpit.mcp.answer_call import INSTRUCTIONS

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Versions that open with ``initialize``, the newest last."""
ENVELOPE_VERSION = "2026-07-28"
"""The version whose requests carry the client's description in ``_meta``."""
_META = "io.modelcontextprotocol/"
_VERSION_KEY = f"{_META}protocolVersion"
_SERVER = {"name": "cockpit", "version": __version__}
_CAPABILITIES = {"tools": {"listChanged": False}}
CONNECTION_CLOSED = {"code": -32000, "message": "Connection closed"}


class PlainMessage(Struct, frozen=True):
    """A message that needs no SDK."""

    method: str
    request_id: int | str | None
    """None for a notification."""
    params: Mapping[str, Any]
    client_name: str | None
    """The name that the client gives itself in this message; None if it does not."""
    enveloped: bool
    """Whether the request carries its own version, as those of :data:`ENVELOPE_VERSION` do."""


def read_plain(line: str) -> PlainMessage | None:
    """Read a line; returns None for everything that the SDK should answer."""
    try:
        message = json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None
    if (
        not isinstance(message, dict)
        or message.get("jsonrpc") != "2.0"
        or not isinstance(message.get("method"), str)
        or not message.keys() <= {"jsonrpc", "id", "method", "params"}
    ):
        return None
    method, params = message["method"], message.get("params")
    if params is None:
        params = {}
    if not isinstance(params, dict):
        return None
    if "id" not in message:
        return PlainMessage(method, None, params, None, False)
    request_id = message["id"]
    if type(request_id) not in (int, str):
        return None
    meta = params.get("_meta", {})
    if not isinstance(meta, dict):
        return None
    if _VERSION_KEY in meta and method != "initialize":
        return _read_enveloped(method, request_id, params, meta)
    return _read_after_handshake(method, request_id, params, meta)


def render_result(request: PlainMessage, result: Mapping[str, Any], **extra: Any) -> str:
    """Render the answer to ``request``; ``extra`` is what only enveloped answers carry."""
    if request.enveloped:
        stamp = {f"{_META}serverInfo": _SERVER}
        result = {**result, **extra, "resultType": "complete", "_meta": stamp}
    return _render({"jsonrpc": "2.0", "id": request.request_id, "result": result})


def render_error(request: PlainMessage, error: Mapping[str, Any]) -> str:
    """Render an error as the answer to ``request``."""
    return _render({"jsonrpc": "2.0", "id": request.request_id, "error": error})


def render_welcome(request: PlainMessage) -> str:
    """Render the answer to ``initialize`` or ``server/discover``."""
    about = {"capabilities": _CAPABILITIES, "instructions": INSTRUCTIONS}
    if request.enveloped:
        return render_result(
            request, {**about, "supportedVersions": [ENVELOPE_VERSION]}, **UNCACHED
        )
    wanted = request.params["protocolVersion"]
    version = wanted if wanted in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
    return render_result(request, {**about, "protocolVersion": version, "serverInfo": _SERVER})


UNCACHED: Mapping[str, Any] = {"cacheScope": "private", "ttlMs": 0}
"""What enveloped lists say about keeping them."""


def _read_enveloped(
    method: str, request_id: int | str, params: dict[str, Any], meta: dict[str, Any]
) -> PlainMessage | None:
    about = meta.get(f"{_META}clientInfo")
    if (
        meta[_VERSION_KEY] != ENVELOPE_VERSION
        or not _are_capabilities(meta.get(f"{_META}clientCapabilities"))
        or not (about is None or _is_client(about))
        or not _is_plain_call(method, params, {"server/discover", "tools/list", "tools/call"})
    ):
        return None
    return PlainMessage(method, request_id, params, about["name"] if about else "", True)


def _read_after_handshake(
    method: str, request_id: int | str, params: dict[str, Any], meta: dict[str, Any]
) -> PlainMessage | None:
    token = meta.get("progressToken", 0)
    if any(key.startswith(_META) for key in meta) or type(token) not in (int, str):
        return None
    if method == "initialize":
        if (
            not params.keys() <= {"protocolVersion", "capabilities", "clientInfo", "_meta"}
            or not isinstance(params.get("protocolVersion"), str)
            or not _are_capabilities(params.get("capabilities"))
            or not _is_client(params.get("clientInfo"))
        ):
            return None
        return PlainMessage(method, request_id, params, params["clientInfo"]["name"], False)
    if not _is_plain_call(method, params, {"ping", "tools/list", "tools/call"}):
        return None
    return PlainMessage(method, request_id, params, None, False)


def _is_plain_call(method: str, params: dict[str, Any], methods: set[str]) -> bool:
    if method not in methods:
        return False
    if method != "tools/call":
        return params.keys() <= {"_meta"}
    arguments = params.get("arguments")
    return (
        params.keys() <= {"name", "arguments", "_meta"}
        and isinstance(params.get("name"), str)
        and (arguments is None or isinstance(arguments, dict))
    )


def _are_capabilities(value: object) -> bool:
    """Whether these are capabilities without anything that the SDK might refuse."""
    return isinstance(value, dict) and all(
        isinstance(capability, dict)
        and all(
            type(setting) is bool if name == "roots" else isinstance(setting, dict)
            for setting in capability.values()
        )
        for name, capability in value.items()
    )


def _is_client(value: object) -> bool:
    return (
        isinstance(value, dict)
        and {"name", "version"} <= value.keys() <= {"name", "version", "title", "description"}
        and all(isinstance(text, str) for text in value.values())
    )


def _render(message: Mapping[str, Any]) -> str:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")) + "\n"


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
