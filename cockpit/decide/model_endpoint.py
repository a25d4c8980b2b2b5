"""The address of a model, its name there and its key. Keys never leave this record."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from cockpit.core.secrets import mask
from cockpit.decide.model_settings import ModelPrice, Thinking

Vendor = Literal["anthropic", "openai", "openai-compatible"]

TITLES: dict[str, str] = {
    "anthropic": "Anthropic",
    "openai": "OpenAI",
}

# Providers echo keys shortened or starred out; those are shorter than what is masked elsewhere.
_KEY_SHAPES = re.compile(r"\b(?:sk|pk|rk)-[A-Za-z0-9_\-*]{6,}|(?i:bearer)\s+[A-Za-z0-9._\-]{8,}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]+")
_SHORTEST_KEY = 8
_MAX_MESSAGE_CHARS = 400


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One model at one address. ``key`` is shown nowhere, not even in ``repr``.

    ``name`` is the full name it was chosen under (``anthropic:claude-…``), ``model`` the provider's
    own, ``key_variable`` the environment variable that holds (or should hold) the key,
    ``timeout_s`` the longest silence in seconds that is waited through, ``max_retries`` how often a
    call is tried again after its first attempt.
    """

    vendor: Vendor
    name: str
    model: str
    base_url: str
    key: str = field(repr=False)
    key_variable: str
    timeout_s: float
    max_retries: int
    price: ModelPrice | None = None
    """The user's price, for a model that no price list has."""
    thinking: Thinking = "default"

    @property
    def title(self) -> str:
        """The service as a sentence names it: ``Anthropic``, or the address of a compatible one."""
        return TITLES.get(self.vendor, self.base_url)

    def clean(self, words: str) -> str:
        """Return a provider's message as it may be shown: key masked, one line, 400 characters."""
        # A short one stands for no key (`ollama`, `none`), and is a word of other sentences.
        if len(self.key) >= _SHORTEST_KEY:
            words = words.replace(self.key, "[key]")
        words = _CONTROL.sub(" ", _KEY_SHAPES.sub("[key]", mask(words)))
        words = " ".join(words.split())
        return words if len(words) <= _MAX_MESSAGE_CHARS else words[: _MAX_MESSAGE_CHARS - 1] + "…"


def address_problem(url: str) -> str:
    """Return why ``url`` cannot be the address of a service; empty when it can."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return str(error)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "it must look like http://HOST:PORT/v1"
    if port == 0:
        return "port 0 is not a port"
    if parts.username is not None or parts.password is not None:
        return "it must not carry a user or a password; keys come from the environment"
    if parts.query or parts.fragment:
        return "it must not carry a query or a fragment"
    if re.search(r"\s", url):
        return "it contains a space"
    return ""
