"""Actions that open the screens of lists, and the verbs of each on the row under the cursor.

Specified in ``docs/reference/screen.md``, lists.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from cockpit.app.actions.action import Action
from cockpit.app.actions.context import ActionContext, Pane
from cockpit.app.host import Host
from cockpit.collections.registry import PLAIN_NAMES, load_collection

if TYPE_CHECKING:
    from cockpit.app.screens.lists.list_screen import ListScreen


def open_list_screen(host: Host, name: str, question: str = "") -> None:
    """Open a list in place of the one that is open; the same again changes nothing.

    ``question`` is searched for in the project's knowledge.
    """
    from cockpit.app.screens.lists.list_screen import ListScreen

    shown = host.screen
    if isinstance(shown, ListScreen):
        if name == shown.PANE and not question:
            return
        host.pop_screen()
    screen = _make_screen(host, name)
    if question:
        screen.ask(question)
    host.open_screen(screen)


def _make_screen(host: Host, name: str) -> ListScreen[Any]:
    """Make the screen of a list; none is imported before it is opened."""
    module, class_name = _SCREENS.get(name, ("collection_screen", "CollectionScreen"))
    screen_class = getattr(import_module(f"cockpit.app.screens.lists.{module}"), class_name)
    collection = name.replace("_", "-")
    screen: ListScreen[Any] = (
        screen_class(host, load_collection(collection))
        if collection in PLAIN_NAMES
        else screen_class(host)
    )
    return screen


_SCREENS = {
    "sessions": ("sessions_screen", "SessionsScreen"),
    "requests": ("proposals_screen", "ProposalsScreen"),
    "tools": ("tools_screen", "ToolsScreen"),
    "notes": ("notes_screen", "NotesScreen"),
    "session_state": ("session_state_screen", "SessionStateScreen"),
    "knowledge": ("knowledge_screen", "KnowledgeScreen"),
    "settings": ("settings_screen", "SettingsScreen"),
    "doctor": ("doctor_screen", "DoctorScreen"),
}
"""Module and class of each list that does more than its collection says, by the action that opens it."""


def _run_verb(host: Host, verb: str) -> None:
    from cockpit.app.screens.lists.list_screen import ListScreen

    if isinstance(host.screen, ListScreen):
        host.screen.run_verb(verb)


def _has_verb(verb: str, context: ActionContext) -> bool:
    return verb in context.row_verbs


def _list_is_closed(context: ActionContext) -> bool:
    return not context.list_open


def _verb(pane: Pane, verb: str, title: str, *keys: str) -> Action[Host]:
    return Action(
        f"{pane}_{verb}", "Lists", title, verb, (), keys, pane, when=partial(_has_verb, verb),
        needs="a row that allows it", run=partial(_run_verb, verb=verb),
    )  # fmt: skip


def _opener(
    pane: Pane, title: str, label: str, key: str, command: str = "", synonyms: str = ""
) -> Action[Host]:
    return Action(
        pane, "Look", title, label, (key,) if key else (), run=partial(open_list_screen, name=pane),
        when=_list_is_closed, needs="no open list", command=command or pane, synonyms=synonyms,
    )  # fmt: skip


def _of_collection(name: str) -> Iterator[Action[Host]]:
    """Yield what opens the list of a collection, and its verbs."""
    collection, pane = load_collection(name), name.replace("-", "_")
    yield _opener(
        pane, collection.summary.rstrip("."), collection.title.lower(), collection.key, name,
        collection.synonyms,
    )  # fmt: skip
    for verb in collection.verbs:
        yield _verb(pane, verb.name, verb.title, verb.key)
    for each in collection.filters:
        if each.key:
            yield _verb(pane, each.name, each.help.rstrip("."), each.key)


LIST_ACTIONS: tuple[Action[Host], ...] = (
    _opener(
        "sessions", "Show all sessions, follow and rename them", "sessions", "f6", "resume",
        "resume continue open history switch follow another recover yesterday earlier killed crash",
    ),
    _verb("sessions", "follow", "Follow a session", "f"),
    _verb("sessions", "rename", "Rename a session", "e"),
    _verb("sessions", "fork", "Fork a session after one of its waves", "c"),
    _verb("sessions", "rewind", "Go back to an earlier wave of a session, with its files", "z"),
    _verb("sessions", "forward", "Bring back the files that going back replaced", "u"),
    _verb("sessions", "export", "Follow a session and export it", "w"),
    _opener(
        "requests", "Show all proposals that wait, approve equal ones", "proposals", "alt+q",
        "proposals", "queue waiting approve all batch agents several",
    ),
    _verb("requests", "open", "Go to a proposal and its session", "o"),
    _verb("requests", "equal", "Approve all equal proposals of low risk", "b"),
    _verb("requests", "always", "Approve a proposal, and such ones from now on", "a"),
    _verb("requests", "again", "Ask the agent for a decided proposal again", "r"),
    _verb("requests", "decided", "List decided proposals, or leave them out", "h"),
    _verb("tools", "approve", "Approve a tool", "a"),
    _verb("tools", "list", "Start an MCP server and list its tools", "l"),
    _verb("tools", "forget", "Withdraw the approval of a tool", "x"),
    _verb("notes", "write", "Write a note of your own", "n"),
    _opener(
        "session_state", "Show what the session has read, changed, run and loaded", "state", "alt+i",
        "state", "files facts memory",
    ),
    _verb("session_state", "open", "Open the file of a row", "o"),
    _opener("knowledge", "Search the project's knowledge", "knowledge", "alt+s", synonyms="docs find rag"),
    _verb("knowledge", "open", "Open the file of a passage", "o"),
    _verb("knowledge", "add", "Add a passage to the next packet", "a"),
    _verb("knowledge", "refresh", "Look at every document again", "r"),
    _verb("settings", "change", "Change a setting", "e"),
    _verb("settings", "unset", "Put a setting back to its default", "x"),
    _opener(
        "doctor", "Check the setup: models, agents, sandbox, store", "doctor", "",
        synonyms="health status problems diagnose login api key credentials account install",
    ),
    _verb("doctor", "refresh", "Check the setup again", "r"),
    *(action for name in PLAIN_NAMES for action in _of_collection(name)),
)  # fmt: skip
