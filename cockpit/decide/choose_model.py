"""Choosing the model of a session: name, settings and environment in, a :class:`Model` out.

Names: ``anthropic:NAME``, ``openai:NAME``, ``openai-compatible:NAME``,
``openai-compatible:NAME@http://HOST:PORT/v1``, ``offline``, ``script:FILE``; ``anthropic`` and ``openai``
alone mean that provider's default model. Nothing here loads a model SDK. See
``docs/reference/configuration.md``.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Literal

from cockpit.decide.model import Model, ModelError
from cockpit.decide.model_endpoint import Endpoint, Vendor, address_problem
from cockpit.decide.model_settings import ModelSettings
from cockpit.decide.provider_extras import require_extra

__all__ = [
    "ACCEPTED",
    "DEFAULT_MODELS",
    "KEY_VARIABLES",
    "OFFLINE",
    "ModelSettings",
    "choose_model",
    "model_named",
]

Sleep = Callable[[float], Awaitable[None]]

DEFAULT_MODELS: dict[Literal["anthropic", "openai"], str] = {
    "anthropic": "claude-sonnet-5-5",
    "openai": "gpt-6.1-terra",
}
"""The model that a provider's key alone selects."""

KEY_VARIABLES: dict[Vendor, str] = {
    "anthropic": "ANTHROPIC_API_KEY",
    "openai": "OPENAI_API_KEY",
    "openai-compatible": "COCKPIT_API_KEY",
}

_ADDRESSES: dict[Literal["anthropic", "openai"], tuple[str, str]] = {
    "anthropic": ("ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
    "openai": ("OPENAI_BASE_URL", "https://api.openai.com/v1"),
}

OFFLINE = "offline"
"""The name of the offline rules, which can start a task and cannot complete one."""

ACCEPTED = (
    "anthropic:NAME, openai:NAME, openai-compatible:NAME (with [model] base_url, "
    "COCKPIT_BASE_URL or OPENAI_BASE_URL), openai-compatible:NAME@http://HOST:PORT/v1, "
    "offline, script:FILE"
)


def choose_model(
    spec: str | None,
    *,
    config: ModelSettings,
    env: Mapping[str, str],
    sleep: Sleep = asyncio.sleep,
) -> Model:
    """Return the model named by ``spec``, else by the settings, else by the key that is set, else offline.

    ``sleep`` waits between retries and for the pace of a script.
    Raises :class:`ModelError`: ``config`` for a name or address that cannot be and for an SDK that is not
    installed, ``auth`` for a missing key (naming its variable), ``script`` for an invalid scenario.
    """
    name = model_named(spec, config, env)
    if name == OFFLINE:
        from cockpit.decide.offline.offline_model import OfflineModel

        return OfflineModel()
    kind, _, rest = name.partition(":")
    if kind == "script" and rest:
        from cockpit.decide.offline.script_model import ScriptModel

        return ScriptModel(rest, sleep=sleep)
    if kind == "outside" and rest:
        from cockpit.decide.external_agent_model import ExternalAgentModel

        return ExternalAgentModel(rest)
    if kind == "runner":
        raise ModelError(
            "config",
            f"An external agent ({rest or 'no name'}) ran this session for one part of a task, so it cannot"
            " be resumed. Start a new session.",
        )
    from cockpit.decide.call_model_with_retry import ProviderModel

    return ProviderModel(_endpoint(name, kind, rest, config, env), sleep=sleep)


def model_named(spec: str | None, config: ModelSettings, env: Mapping[str, str]) -> str:
    """Return the name that :func:`choose_model` would use, whether or not that model exists."""
    name = (spec or "").strip() or (config.model or "").strip() or _by_key(env)
    for vendor, model in DEFAULT_MODELS.items():
        if name in (vendor, f"{vendor}:"):
            return f"{vendor}:{model}"
    return name


def _by_key(env: Mapping[str, str]) -> str:
    for vendor, model in DEFAULT_MODELS.items():
        if env.get(KEY_VARIABLES[vendor], "").strip():
            return f"{vendor}:{model}"
    return OFFLINE


def _endpoint(
    name: str, kind: str, rest: str, config: ModelSettings, env: Mapping[str, str]
) -> Endpoint:
    if kind == "anthropic":
        return _own("anthropic", rest, config, env)
    if kind == "openai":
        return _own("openai", rest, config, env)
    if kind == "openai-compatible" and rest:
        return _compatible(rest, config, env)
    raise ModelError("config", f"{name!r} is not a model's name. Accepted: {ACCEPTED}.")


def _own(
    vendor: Literal["anthropic", "openai"],
    model: str,
    config: ModelSettings,
    env: Mapping[str, str],
) -> Endpoint:
    model = model or DEFAULT_MODELS[vendor]
    variable = KEY_VARIABLES[vendor]
    key = env.get(variable, "").strip()
    if not key:
        raise ModelError(
            "auth",
            f"{vendor}:{model} needs a key in the environment variable {variable}, "
            "which is not set. Set it, or choose the model 'offline'.",
        )
    address_variable, address = _ADDRESSES[vendor]
    url = env.get(address_variable, "").strip() or address
    return _built(vendor, f"{vendor}:{model}", model, url, address_variable, key, variable, config)


def _compatible(rest: str, config: ModelSettings, env: Mapping[str, str]) -> Endpoint:
    variable = KEY_VARIABLES["openai-compatible"]
    key = env.get(variable, "").strip()
    match = re.fullmatch(r"(?P<model>.+?)@(?P<url>https?://.*)", rest)
    if match:
        model, url, origin = match["model"], match["url"], "the model's name"
    else:
        model, url, origin = rest, "", ""
        for candidate, source in (
            (config.base_url, "[model] base_url"),
            (env.get("COCKPIT_BASE_URL"), "COCKPIT_BASE_URL"),
            (env.get("OPENAI_BASE_URL"), "OPENAI_BASE_URL"),
        ):
            if candidate and candidate.strip():
                url, origin = candidate.strip(), source
                break
    if not url:
        raise ModelError(
            "config",
            f"openai-compatible:{model} has no address. Set [model] base_url or "
            f"COCKPIT_BASE_URL, or write openai-compatible:{model}@http://HOST:PORT/v1.",
        )
    if origin == "OPENAI_BASE_URL" and not key:
        # The OpenAI key goes only to the address that the same environment pairs it with.
        variable, key = "OPENAI_API_KEY", env.get("OPENAI_API_KEY", "").strip()
    name = f"openai-compatible:{rest}"
    return _built("openai-compatible", name, model, url, origin, key, variable, config)


def _built(
    vendor: Vendor,
    name: str,
    model: str,
    url: str,
    origin: str,
    key: str,
    variable: str,
    config: ModelSettings,
) -> Endpoint:
    problem = address_problem(url)
    if problem:
        raise ModelError("config", f"The address in {origin} cannot be used: {problem}.")
    if not key.isascii() or not key.isprintable() or any(c.isspace() for c in key):
        raise ModelError(
            "auth", f"The key in {variable} contains characters that a key never has. Set it again."
        )
    require_extra(vendor, name)
    return Endpoint(
        vendor=vendor,
        name=name,
        model=model,
        base_url=url.rstrip("/"),
        key=key,
        key_variable=variable,
        timeout_s=config.timeout_s,
        max_retries=config.max_retries,
        price=config.prices.get(name),
        thinking=config.thinking,
    )
