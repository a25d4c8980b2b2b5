"""Commands as the ``run`` tool runs them, with bubblewrap and without."""

from __future__ import annotations

from act_world import show

from cockpit.act.adapters import ADAPTERS, Outcome
from cockpit.act.workspace import Workspace

RUN = ADAPTERS["run"]


async def run(ground: Workspace, *argv: str, timeout_s: int = 60) -> Outcome:
    proposal = await show(ground, "run", argv=list(argv), reason="r", timeout_s=timeout_s)
    return await RUN.perform(proposal.payload, "k", ground)


def said(outcome: Outcome) -> str:
    return str(outcome.detail["stdout"]) + str(outcome.detail["stderr"])
