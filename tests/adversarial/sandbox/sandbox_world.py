"""Attacks from inside the sandbox, each of which succeeds as soon as its defence is taken out."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from cockpit.act.sandbox.bubblewrap import Extra, Launch, Sandbox
from cockpit.act.sandbox.run_confined import ConfinedRun, run_confined
from cockpit.act.workspace import Workspace

Loosen = Callable[[list[str]], list[str]]


class Loosened(Sandbox, frozen=True):
    """A sandbox with one of its defences taken out of bubblewrap's words."""

    loosen: Loosen = list

    @contextlib.contextmanager
    def launch(
        self,
        argv: Sequence[str],
        root: Path,
        environment: Mapping[str, str],
        *,
        network: bool = False,
        extra: Extra | None = None,
    ) -> Iterator[Launch]:
        strict = super().launch
        with strict(argv, root, environment, network=network, extra=extra) as launch:
            yield Launch(tuple(self.loosen(list(launch.argv))), launch.files)


def loosened(ground: Workspace, loosen: Loosen) -> Workspace:
    sandbox = ground.sandbox
    fields = {name: getattr(sandbox, name) for name in Sandbox.__struct_fields__}
    return replace(ground, sandbox=Loosened(**fields, loosen=loosen))


def limited(ground: Workspace, **limits: int) -> Workspace:
    choices = ground.sandbox.choices
    changed = replace(choices, limits=replace(choices.limits, **limits))
    return replace(ground, sandbox=replace(ground.sandbox, choices=changed))


def drop(option: str) -> Loosen:
    """Take an option out, with the value that it has."""
    values = {"--cap-drop": 1, "--seccomp": 1}.get(option, 0)

    def loosen(argv: list[str]) -> list[str]:
        if option not in argv:
            return argv  # not every bubblewrap has it
        at = argv.index(option)
        return [*argv[:at], *argv[at + 1 + values :]]

    return loosen


def swap(old: Sequence[str], new: Sequence[str]) -> Loosen:
    """Put ``new`` in the place of the words ``old``."""

    def loosen(argv: list[str]) -> list[str]:
        for at in range(len(argv)):
            if argv[at : at + len(old)] == list(old):
                return [*argv[:at], *new, *argv[at + len(old) :]]
        raise AssertionError(f"{old} is not a defence of this sandbox: {argv}")

    return loosen


def both(first: Loosen, second: Loosen) -> Loosen:
    return lambda argv: second(first(argv))


NO_FILTER = drop("--seccomp")
OLD_KERNEL_NAMES = both(NO_FILTER, drop("--disable-userns"))
SHARED_NETWORK = swap(["--unshare-all"], ["--unshare-all", "--share-net"])
SHARED_PROCESSES = both(
    drop("--as-pid-1"), swap(["--unshare-all"], ["--unshare-net", "--unshare-ipc", "--unshare-uts"])
)


async def attack(ground: Workspace, script: str, *words: Any, timeout_s: float = 60) -> ConfinedRun:
    """Run a Python script in the sandbox, where only an isolated one has bytecode of what it imports."""
    argv = (sys.executable, "-I", "-S", "-c", script, *(str(word) for word in words))
    return await run_confined(
        ground.sandbox, argv, ground.root, ground.environment, timeout_s=timeout_s
    )


async def answer(ground: Workspace, script: str, *words: Any) -> str:
    """Return what the script prints; it must end well."""
    ended = await attack(ground, script, *words)
    assert ended.finished.ok, (ended.passed, ended.finished.error_text)
    return ended.finished.text.strip()


IS_ADMINISTRATOR = os.geteuid() == 0
