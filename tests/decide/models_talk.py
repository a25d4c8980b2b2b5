"""One provider's model over the loopback server, with keys that must show up nowhere."""

from __future__ import annotations

from dataclasses import dataclass, field

from loopback.server import Loopback

from cockpit.decide.choose_model import ModelSettings, choose_model
from cockpit.decide.model import Model, ModelEvent, Prompt

KEYS = {"ANTHROPIC_API_KEY": "sk-ant-canary-1", "OPENAI_API_KEY": "sk-oai-canary-2"}
KEYS["COCKPIT_API_KEY"] = "local-canary-3"


@dataclass
class Talk:
    """One provider's model over the loopback server; waits are noted instead of waited."""

    vendor: str
    server: Loopback
    waits: list[float] = field(default_factory=list)

    @property
    def spec(self) -> str:
        if self.vendor == "openai-compatible":
            return f"openai-compatible:qwen3-coder@{self.server.openai_url}"
        return self.vendor

    def env(self) -> dict[str, str]:
        urls = {"ANTHROPIC_BASE_URL": self.server.url, "OPENAI_BASE_URL": self.server.openai_url}
        return {**KEYS, **urls}

    def model(self, config: ModelSettings | None = None) -> Model:
        return choose_model(
            self.spec, config=config or ModelSettings(), env=self.env(), sleep=self._note
        )

    async def say(self, prompt: Prompt, config: ModelSettings | None = None) -> list[ModelEvent]:
        return [event async for event in self.model(config).stream(prompt)]

    async def _note(self, seconds: float) -> None:
        self.waits.append(seconds)
