"""The model settings of the configuration; nothing else is loaded to read them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The ``[model]`` table. ``timeout_s`` is the longest silence in seconds before a call
    fails, ``max_retries`` the retries after its first attempt."""

    model: str | None = None
    base_url: str | None = None
    timeout_s: float = 120.0
    max_retries: int = 4
