"""``cockpit acp``: serve cockpit's own agent to editors and other clients of the Agent Client Protocol."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cockpit.cli_options import APPROVE, MODEL, examples
from cockpit.commands.open_project import (
    WrongUse,
    ensure_root_token,
    find_project,
    load_project_settings,
    open_project_runtime,
)
from cockpit.commands.terminal import is_terminal, say
from cockpit.core.errors import CockpitError

if TYPE_CHECKING:
    from cockpit.acp_server.agent_server import OpenProject
    from cockpit.acp_server.session_updates import Wording
    from cockpit.core.project_paths import ProjectPaths
    from cockpit.loop.runtime import Runtime
    from cockpit.loop.runtime_settings import RuntimeSettings


class ProjectNotOpened(CockpitError):
    """A client asks for a folder that is not opened for it."""

    code = "not_trusted"


@click.command(
    short_help="Serve editors over ACP.",
    epilog=examples("cockpit acp", "cockpit acp --model anthropic:claude-sonnet-4-5"),
)
@APPROVE
@MODEL
def acp(approve: str | None, model: str | None) -> None:
    """Serve cockpit's agent over the Agent Client Protocol: to Zed, JetBrains, Toad, or any other client.

    A client starts this command and talks to it on standard input and output. Each proposal waits in the
    queue of its project, and the client asks you about it too; the first decision counts.
    docs/how-to/editors.md has the settings of each client.
    """
    if sys.stdin is None or sys.stdout is None:
        raise WrongUse(
            "Standard input or output is closed. An ACP client starts this command and talks to it there."
        )
    if is_terminal(sys.stdin):
        say("An ACP client starts this command. docs/how-to/editors.md says how; Ctrl+C ends it.")
    flags = {"[model] name": model, "[approval] policy": approve}
    from cockpit.acp_server.run_server import serve_stdio

    try:
        asyncio.run(serve_stdio(project_opener(flags), load_wording(), say))
    except ValueError as error:
        raise WrongUse(
            f"Standard input and output must be pipes of an ACP client: {error}"
        ) from error


def project_opener(flags: Mapping[str, object]) -> OpenProject:
    """Return the function that opens a client's folder with its settings, ``flags`` before them."""

    @asynccontextmanager
    async def open_project(folder: Path) -> AsyncIterator[Runtime]:
        place, settings = await _prepare(folder, flags)
        async with open_project_runtime(place, settings) as runtime:
            yield runtime

    return open_project


def load_wording() -> Wording:
    """Return how proposals and other texts are written for a client."""
    from cockpit.acp_server.session_updates import Wording
    from cockpit.commands.sessions.proposal_text import proposal_text
    from widgets.text.clean import clean

    return Wording(clean, proposal_text)


async def _prepare(
    folder: Path, flags: Mapping[str, object]
) -> tuple[ProjectPaths, RuntimeSettings]:
    """Return the project of ``folder`` and its settings.

    Nobody can be asked here, so a project with files that the user has not trusted is not opened. Raises
    :class:`ProjectNotOpened`.
    """
    from cockpit.commands.unconfined import settle_unconfined
    from cockpit.core.project.project_trust import list_untrusted

    place = find_project(folder)
    if not (place.git or place.folder.is_dir() or place.database.exists()):
        raise ProjectNotOpened(
            f"{folder} is not a project: it is not in a git repository and has no .cockpit folder. Open your"
            " repository, or run `git init` or `cockpit init` there first."
        )
    if files := list_untrusted(place.home):
        names = ", ".join(file.name for file in files)
        raise ProjectNotOpened(
            f"You have not trusted .cockpit of {place.home} ({names}), so it was not opened. Run `cockpit"
            " trust` there in a terminal of your own, which shows the files, and start again."
        )
    settings = load_project_settings(place, flags, ask=lambda _title, _text: False)
    ensure_root_token(place, quiet=True)
    await settle_unconfined(settings, None)
    return place, settings.runtime
