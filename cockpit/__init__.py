"""cockpit: mission control for coding agents in the terminal.

``from cockpit import OmniLoop`` runs tasks from a Python program; see ``docs/reference/library.md``.
``from cockpit import tool`` marks a function as a tool; see ``docs/reference/tools.md``.
"""

__version__ = "0.1.0"

_LATE = {
    "OmniLoop": "cockpit.library.omni_loop",
    "OmniLoopConfig": "cockpit.library.omni_loop",
    "run_sync": "cockpit.library.omni_loop",
    "LoopEvent": "cockpit.library.omni_loop",
    "LoopResult": "cockpit.library.loop_result",
    "ApprovalRequest": "cockpit.library.approvals",
    "Answer": "cockpit.library.approvals",
    "tool": "cockpit.act.own_tools.decorator",
    "MissingInput": "cockpit.act.own_tools.decorator",
}
"""By public name the module that has it: nothing is imported before it is used. Typed in ``__init__.pyi``."""


def __getattr__(name: str) -> object:
    if name not in _LATE:
        raise AttributeError(f"module 'cockpit' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LATE[name]), name)


def __dir__() -> list[str]:
    return sorted((*globals(), *_LATE))
