"""The list of models: those of this project and of the providers, and any other name that is typed.

Specified in ``docs/reference/screen.md``, commands.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator

from cockpit.app.dialogs.small_dialogs import PickOne
from cockpit.app.host import Host
from cockpit.decide.choose_model import DEFAULT_MODELS, KEY_VARIABLES, OFFLINE
from widgets.forms.pick_list import PickRow

_OWN = "provider:model"
_NOT_PICKED = ("runner:", "outside:")
"""External agents choose their models themselves."""


def list_models(host: Host, current: str) -> list[PickRow]:
    """List models to pick: the current one, those of other sessions, the providers' and the offline rules."""
    hints = dict(_provider_models())
    used = [session.model for session in reversed(host.state.listed.values())]
    names = [current, host.welcome.model, *used, *hints]
    models = [name for name in names if name and not name.startswith(_NOT_PICKED)]
    return [
        (name, name, "now" if name == current else hints.get(name, "used before"))
        for name in dict.fromkeys(OFFLINE if name.startswith(OFFLINE) else name for name in models)
    ]


def _provider_models() -> Iterator[tuple[str, str]]:
    for vendor, model in DEFAULT_MODELS.items():
        variable = KEY_VARIABLES[vendor]
        hint = "" if os.environ.get(variable, "").strip() else f"needs {variable}"
        yield f"{vendor}:{model}", hint
    yield OFFLINE, "rules, no model: reviews and plans"


def ask_model(host: Host, change: Callable[[str], Awaitable[object]], typed: str = "") -> None:
    """Let the user pick or type a model and call ``change`` with it; asks again where that is refused."""
    session = host.session
    current = session.model if session is not None else host.welcome.model
    title = "Model" if host.session_id else "Model of new sessions"
    rows = list_models(host, current)

    async def try_change(name: str) -> None:
        try:
            await change(name)
        except Exception:
            ask_model(host, change, name)
            raise

    def choose(name: str | None) -> None:
        if name and name != current:
            host.request(lambda: try_change(name))

    host.open_screen(PickOne(title, rows, first=current, own=_OWN, typed=typed), choose)
