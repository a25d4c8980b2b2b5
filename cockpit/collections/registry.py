"""Every collection by name; the module of one is imported when it is used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from cockpit.access.principals import Caller
from cockpit.collections.collection import Collection
from cockpit.core.errors import NotFound

_MODULES = {
    "agents": "agents",
    "chains": "work.chains",
    "events": "events",
    "feedback": "feedback",
    "guards": "guards",
    "handoffs": "work.handoffs",
    "notes": "notes",
    "outbox": "outbox",
    "packets": "packets",
    "profiles": "profiles",
    "projects": "projects",
    "proposals": "work.proposals",
    "sessions": "work.sessions",
    "settings": "settings",
    "skills": "skills",
    "task-types": "task_types",
    "tasks": "work.tasks",
    "tokens": "tokens",
    "tools": "tools",
    "trust": "trust",
}
"""By name: the module below this folder, whose ``COLLECTION`` it is."""
NAMES = tuple(_MODULES)
WITH_OWN_PAGES = ("chains", "projects", "proposals", "sessions", "tasks")
"""Those with a screen of their own, and HTTP routes where programs may read them, which show more and act."""
PLAIN_NAMES = tuple(name for name in NAMES if name not in WITH_OWN_PAGES)


def load_collection(name: str) -> Collection[Any]:
    """Return the collection of that name. Raises ``NotFound``."""
    if name not in _MODULES:
        raise NotFound(f"There is no collection {name!r}. There are {', '.join(NAMES)}.")
    module = import_module(f"cockpit.collections.{_MODULES[name]}")
    collection: Collection[Any] = module.COLLECTION
    return collection


def load_served(name: str, caller: Caller) -> Collection[Any]:
    """Return a collection that programs read, for one that may. Raises ``NotFound`` and ``NotAllowed``."""
    collection = load_collection(name)
    if not collection.scope:
        raise NotFound(f"{collection.title} are for the user alone, at a terminal.")
    caller.require(collection.scope, f"read {collection.title.lower()}")
    return collection
