"""Say before anything starts what will run outside the sandbox, and ask the user at the terminal."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from msgspec import Struct

from cockpit.commands.open_project import WrongUse
from cockpit.commands.terminal import is_terminal, say
from cockpit.core.errors import CockpitError
from cockpit.core.text import end_sentence

if TYPE_CHECKING:
    from cockpit.config.load_settings import Settings
    from cockpit.store.chains.chains import Chain
    from cockpit.store.db.database import Store


class NoReadingSandbox(CockpitError):
    """A policy was named that lets commands run unasked, and nothing confines them."""

    code = "no_sandbox"


class Unconfined(Struct, frozen=True):
    """What runs with all of the user's rights, and why."""

    subject: str
    """``commands``, or the name of an external agent's runner."""
    reason: str
    chosen: bool = False
    """Whether the user's own configuration says so."""

    @property
    def words(self) -> str:
        """Return it as a sentence."""
        what = (
            "Commands and tests run"
            if self.subject == "commands"
            else f"The agent of {self.subject} runs"
        )
        why = end_sentence(self.reason)
        return f"No sandbox: {why} {what} with all of your rights, your files and the network."


async def find_unconfined(settings: Settings, runner_name: str | None) -> Unconfined | None:
    """Return what would run outside the sandbox with this runner (None: the built-in agent)."""
    from cockpit.act.sandbox.bubblewrap import detect
    from cockpit.agents.stdio.driven_runners import find_runner

    sandbox = await detect(os.environ, settings.runtime.sandbox)
    runner = find_runner(settings.runtime, runner_name)
    if runner is not None:
        from cockpit.agents.confine.agent_sandbox import why_unconfined

        why = why_unconfined(sandbox, runner)
        chosen = runner.sandbox is False or not sandbox.choices.agents
        return Unconfined(runner.name, why, chosen) if why else None
    return None if sandbox.works else Unconfined("commands", sandbox.missing)


async def require_reading_sandbox(settings: Settings, policy: str) -> None:
    """Raise :class:`NoReadingSandbox` under a policy that reads unasked, where there is no such sandbox."""
    from cockpit.act.sandbox.bubblewrap import detect
    from cockpit.act.sandbox.reading_sandbox import why_no_reading

    if policy not in ("reads", "all"):
        return
    if why := await why_no_reading(await detect(os.environ, settings.runtime.sandbox)):
        raise NoReadingSandbox(
            f"The policy {policy!r} runs commands unasked, and there is no sandbox for them: {why}. Nothing"
            " was started. `cockpit doctor` says what it needs; pass --no-sandbox to start all the same."
        )


async def settle_unconfined(settings: Settings, runner_name: str | None) -> Unconfined | None:
    """Print what would run outside the sandbox, and return it.

    The user is asked where a terminal is there and nothing else will ask: for an external agent, and for
    commands under the policy ``all``. Raises :class:`WrongUse` where they do not agree.
    """
    unconfined = await find_unconfined(settings, runner_name)
    if unconfined is None:
        return None
    say(unconfined.words)
    asks = unconfined.subject != "commands" or settings.runtime.policy == "all"
    if asks and not unconfined.chosen and is_terminal(sys.stdin) and is_terminal(sys.stderr):
        import click

        if not click.confirm("Start all the same?", err=True):
            raise WrongUse(
                "Nothing was started. `cockpit doctor` says what the sandbox needs here; [sandbox] and"
                " [runner.NAME] of your own configuration decide about agents."
            )
    return unconfined


async def record_unconfined(store: Store, chain: Chain, unconfined: Unconfined | None) -> None:
    """Let the journal, and so the board, say what of the chain runs outside the sandbox."""
    from cockpit.store.journal.details.chains import ChainNoted

    if unconfined is not None:
        event = ChainNoted(
            chain_id=chain.chain_id,
            what="unconfined",
            subject=unconfined.subject,
            reason=unconfined.reason,
        )
        await store.write(lambda tx: tx.journal(event, actor="engine"))
