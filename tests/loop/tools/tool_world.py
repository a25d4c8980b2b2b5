"""Tools of a project, written into its folder, and what a session made of them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from loop.loop_runs import pending, run_to_end
from loop.scenario import finish

from cockpit.loop.runtime import Runtime
from cockpit.loop.tools.approve_tools import approve_file
from cockpit.store.context import facts
from cockpit.store.sessions import proposals

COUNT = '''
from pathlib import Path

from cockpit import tool


@tool(aliases=["wc"], effects="reads")
def count_words(path: str, minimum: int = 1) -> dict[str, int]:
    """Count the words of a file.

    Args:
        path: The file, from the project's root.
        minimum: Shortest word that counts.
    """
    print("counting", path)
    words = [word for word in Path(path).read_text().split() if len(word) >= minimum]
    return {"words": len(words)}


@tool
def add_line(path: str, line: str) -> str:
    """Append a line to a file."""
    with Path(path).open("a") as file:
        file.write(line + "\\n")
    return f"added {len(line)} characters"
'''


def write_tool(project: Path, source: str = COUNT, name: str = "words.py") -> Path:
    """Write a tool's file into the project."""
    folder = project / ".cockpit" / "tools"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(source)
    return folder / name


async def approve(runtime: Runtime, name: str = "words.py", place: str = "project"):
    """Approve the tools of a file as it is now."""
    added = runtime.engine.added
    file = added.catalog.load_file(place, name)
    return await approve_file(added, place, name, shown_digest=file.digest, by="person")


def calling(name: str, arguments: str) -> str:
    """A scenario that calls one tool and finishes."""
    return f'[[turn]]\n[[turn.call]]\nname = "{name}"\narguments = {arguments}\n' + finish(
        "wave_from = 2", summary="Seen."
    )


async def run_session(
    runtime: Runtime, model: str, policy: str = "all", words: str = "implement it"
):
    """Run a session to its end; returns it."""
    return await run_to_end(runtime, model, words, policy)


async def wait_for_call(runtime: Runtime, model: str, policy: str):
    """Run a session until its call waits; returns the session's id, its task, and the proposal."""
    session_id = await runtime.start("implement it", model=model, policy=policy, interactive=False)
    work = asyncio.create_task(runtime.run(session_id))
    return session_id, work, await pending(runtime)


async def read_results(runtime: Runtime, session_id: str) -> list[str]:
    """Return the session's exchanges as the model reads them."""

    def read(connection):
        ids = [
            fact_id
            for (fact_id,) in connection.execute(
                "SELECT fact_id FROM session_facts WHERE session_id=? AND source_type='exchange'"
                " ORDER BY ordinal, position",
                (session_id,),
            )
        ]
        texts = facts.load_texts(connection, ids)
        return [texts[fact_id].full for fact_id in ids]

    return await runtime.store.read(read)


async def read_proposals(runtime: Runtime, session_id: str):
    """Return the session's proposals."""
    return await runtime.store.read(lambda c: proposals.select_for_session(c, session_id))
