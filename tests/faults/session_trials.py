"""Trials of a session that reads, writes two files, runs a command, commits and posts, with a fault in it.

A trial is a project, a session in a forked process that a fault befalls, another process that goes on without
one, and a look at what the world holds then: what is lost, what happened twice, what is left unfinished.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import os
import shutil
import signal
import sqlite3
import tempfile
import threading
import traceback
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import state_for_tests
from faults.injected_faults import Fault, Moment, install
from loop.loop_calc import CALC, TEST, git

from cockpit.access import user_presence
from cockpit.core.errors import AlreadyDecided, CockpitError, StoreBusy, StoreUnwritable
from cockpit.core.project_paths import locate_project
from cockpit.loop.runtime import Runtime, open_runtime
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.observe.count_tokens import count_tokens
from cockpit.orient.verify_packet import recompile_packet
from cockpit.store.context import packets
from cockpit.store.db.database import Store
from cockpit.store.journal import verify_chain
from cockpit.store.sessions import messages, outbox, sessions, waves
from cockpit.store.sessions.sessions import Session

WORDS = "fix add"
FIXED = CALC.replace("a - b", "a + b")
NOTES = "add adds now\n"
PATIENCE_S = 60
"""A process that has not ended after so many seconds hangs."""
COUNTED = "counted.log"
"""The command appends a line to this file each time that it runs."""
_LOADED = (
    "orient.compile_packet", "orient.fact_columns", "decide.offline.script_model",
    "act.adapters.github_write", "act.adapters.git_commit",
)  # fmt: skip
_SCENARIO = r"""
[[turn]]
text = "I need the file."
[[turn.call]]
name = "request_context"
arguments = { purpose = "fix add", question = "what does add do?", scope = ["file:calc.py"] }

[[turn]]
when = { facts = ["file:file:calc.py"] }
text = "The sign is wrong."
[[turn.call]]
name = "edit_file"
arguments = { path = "calc.py", old = "a - b", new = "a + b" }

[[turn]]
when = { contains = ["calc.py is written|edit_file [^\\n]*\\n→ [^\\n]*DID"] }
text = "Now the notes."
[[turn.call]]
name = "write_file"
arguments = { path = "notes.md", content = "add adds now\n" }

[[turn]]
when = { contains = ["notes.md is written|write_file [^\\n]*\\n→ [^\\n]*DID"] }
text = "Now a command."
[[turn.call]]
name = "run"
arguments = { argv = ["sh", "count.sh"], reason = "count" }

[[turn]]
when = { contains = ["sh count.sh: exit 0"] }
text = "Commit."
[[turn.call]]
name = "git_commit"
arguments = { message = "Add adds", paths = ["calc.py", "notes.md"] }

[[turn]]
when = { contains = ["Committed [0-9a-f]{10} on main|git_commit [^\\n]*\\n→ [^\\n]*DID"] }
text = "Tell them."
[[turn.call]]
name = "github"
arguments = { command = "gh pr comment 7 --body 'It adds.'" }

[[turn]]
when = { contains = ["gh pr comment done|github [^\\n]*\\n→ [^\\n]*DID"] }
text = "Done."
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "add adds" }
"""


SCENARIO = _SCENARIO.replace("DID", "(had been done|had done it|It happened, although)")
"""Each turn follows the one before it when that has happened, however it was found out."""


@dataclass(frozen=True, slots=True)
class World:
    """A project with its user's folder, its scripted model and its GitHub."""

    folder: Path

    @property
    def root(self) -> Path:
        return self.folder / "calc"

    @property
    def github(self) -> Path:
        return self.folder / "github"

    @property
    def model(self) -> str:
        return f"script:{self.folder / 'scenario.toml'}"

    def use_state(self) -> None:
        """Let this process keep cockpit's state in the world's folder."""
        os.environ["COCKPIT_STATE_DIR"] = str(self.folder / "state")

    def use_programs(self) -> None:
        """Let this process use the world's GitHub."""
        os.environ["PATH"] = f"{self.folder / 'programs'}{os.pathsep}{os.environ['PATH']}"
        os.environ["FAULTS_GITHUB"] = str(self.github)

    def copy(self, folder: Path) -> World:
        """Copy a world that nothing has happened in yet."""
        shutil.copytree(self.folder, folder, symlinks=True)
        return World(folder)


@dataclass
class Verdict:
    """What does not hold after a trial, in words; each list is empty when all is well."""

    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    stranded: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return not (self.lost or self.doubled or self.stranded)


def make_world(folder: Path) -> World:
    """Make a repository with a bug, a model that mends it, and a GitHub with one pull request."""
    world = World(folder)
    world.root.mkdir(parents=True)
    world.github.mkdir()
    (world.root / "calc.py").write_text(CALC)
    (world.root / "test_calc.py").write_text(TEST)
    (world.root / "count.sh").write_text(f"echo counted >> {COUNTED}\n")
    (world.root / ".gitignore").write_text(f"{COUNTED}\n")
    git(world.root, "init", "-q", "-b", "main")
    git(world.root, "config", "user.name", "T")
    git(world.root, "config", "user.email", "t@example.invalid")
    git(world.root, "remote", "add", "origin", "https://github.com/acme/calc.git")
    git(world.root, "add", "-A")
    git(world.root, "commit", "-q", "-m", "Add calc")
    (folder / "scenario.toml").write_text(SCENARIO)
    (folder / "user").mkdir()
    programs = folder / "programs"
    programs.mkdir()
    shutil.copy(Path(__file__).with_name("fault_gh.sh"), programs / "gh")
    (programs / "gh").chmod(0o755)
    return world


@cache
def load_everything() -> None:
    """Load what a session needs, once for all that are forked: they die in one, not while they load.

    A session that is run here leaves what each of them would work out anew, as patterns.
    """
    user_presence.assume_user()
    state_for_tests.trust_everything()
    count_tokens("loads the vocabulary")
    for name in _LOADED:
        importlib.import_module(f"cockpit.{name}")
    before = dict(os.environ)
    try:
        with tempfile.TemporaryDirectory(prefix="trial-") as folder:
            world = make_world(Path(folder, "world"))
            world.use_programs()
            world.use_state()
            asyncio.run(run_session(world))
    finally:
        os.environ.clear()
        os.environ.update(before)
    assert threading.active_count() == 1, "a process with threads is not forked"


async def run_session(world: World, words: str = WORDS) -> None:
    """Start the session for ``words``, or go on with it, to its end. A user approves what waits for one."""
    place = locate_project(world.root)
    settings = RuntimeSettings(user_dir=world.folder / "user")
    async with open_runtime(place, settings) as runtime:
        begun = runtime.store.read_now(lambda connection: sessions.select_recent(connection, 100))
        session_id = next(
            (session.session_id for session in begun if session.title == words), None
        ) or await runtime.start(words, model=world.model, policy="all", interactive=False)
        user = asyncio.create_task(_approve_what_waits(runtime, place.database))
        try:
            await runtime.run(session_id)
        finally:
            user.cancel()
            await asyncio.gather(user, return_exceptions=True)


async def _approve_what_waits(runtime: Runtime, database: Path) -> None:
    # A connection of its own, of no class of ours: what a user sees is not a moment of the session.
    with contextlib.closing(sqlite3.Connection(database)) as seen:
        while True:
            waiting = seen.execute(
                "SELECT proposal_id FROM proposals WHERE status='pending'"
                " AND EXISTS (SELECT 1 FROM sessions WHERE status='waiting')"
            ).fetchall()
            for (proposal_id,) in waiting:
                # Where several processes have a user, another one may have been first. Who is told that
                # nothing was stored presses the key again.
                with contextlib.suppress(AlreadyDecided, StoreUnwritable, StoreBusy):
                    await runtime.approve(proposal_id)
            await asyncio.sleep(0.02)


@dataclass(frozen=True, slots=True)
class Child:
    """A forked process that does some work in a world."""

    pid: int
    reader: int

    @classmethod
    def start(
        cls,
        world: World,
        work: Callable[[], Coroutine[Any, Any, None]],
        fault: Fault | None = None,
        *,
        tells: bool = False,
    ) -> Child:
        """Fork a process that does ``work`` and that ``fault`` befalls; ``tells`` has it list its moments."""
        reader, writer = os.pipe()
        pid = os.fork()
        if pid:
            os.close(writer)
            return cls(pid, reader)
        code, words = 2, ""
        signal.alarm(PATIENCE_S)
        try:
            world.use_programs()
            world.use_state()
            if fault is not None or tells:
                told = writer if tells else None
                install(fault, world.folder, lambda moment: _tell(told, moment))
            asyncio.run(work())
            code = 0
        except CockpitError as error:
            code, words = 1, f"{type(error).__name__}: {error}"
        except BaseException as error:
            code, words = 2, "".join(traceback.format_exception(error))
        finally:
            os.write(writer, json.dumps({"said": words}).encode() + b"\n")
            os._exit(code)

    def wait(self) -> tuple[int, str, list[Moment]]:
        """Wait for its end; returns its exit code, what it said and its moments.

        Code 0 is an end, -9 a kill, -14 no end in a minute, 1 an error with words of cockpit's own, 2 any
        other error.
        """
        with os.fdopen(self.reader, encoding="utf-8") as lines:
            told = [json.loads(line) for line in lines]
        _, status = os.waitpid(self.pid, 0)
        moments = [Moment(line["kind"], line["words"]) for line in told if "kind" in line]
        words = "".join(line.get("said", "") for line in told)
        return os.waitstatus_to_exitcode(status), words, moments


def _tell(writer: int | None, moment: Moment) -> None:
    if writer is not None:
        line = json.dumps({"kind": moment.kind, "words": " ".join(moment.words.split())[:100]})
        os.write(writer, line.encode() + b"\n")


def list_moments(world: World) -> list[Moment]:
    """Run the session of ``world`` to its end without a fault; returns its moments in order."""
    code, words, moments = Child.start(world, lambda: run_session(world), tells=True).wait()
    assert code == 0, words
    return moments


def try_fault(world: World, folder: Path, fault: Fault) -> Verdict:
    """Let ``fault`` befall the session of a copy of ``world`` in ``folder``; another process goes on."""
    copy = world.copy(folder)
    code, words, _ = Child.start(copy, lambda: run_session(copy), fault).wait()
    expected = (-signal.SIGKILL,) if fault.kind == "kill" else (0, 1)
    code_after, words_after, _ = Child.start(copy, lambda: run_session(copy)).wait()
    verdict = Verdict()
    if code_after == 0:
        verdict = judge(copy)
    else:
        verdict.stranded.append(f"going on ended with {code_after}: {words_after}")
    if code not in expected:
        verdict.stranded.append(f"the fault ended it with {code}: {words}")
    shutil.rmtree(folder)
    return verdict


def _judge_packets(connection: sqlite3.Connection, session: Session, verdict: Verdict) -> None:
    """Judge the packets of a session: each names the one before, and compiles to its digest again."""
    previous = ""
    for wave in waves.select_for_session(connection, session.session_id):
        packet = packets.load(connection, wave.wave_id).packet
        if not recompile_packet(connection, wave.wave_id).ok:
            verdict.lost.append(f"packet {wave.ordinal} compiles to another digest")
        if packet.epoch is None or packet.epoch.previous != previous:
            verdict.lost.append(f"packet {wave.ordinal} does not name the one before")
        previous = packet.digest


def judge(world: World) -> Verdict:
    """Compare what ``world`` holds with what its session was to do, exactly once."""
    verdict = Verdict()
    world.use_state()
    place = locate_project(world.root)
    with Store.open(place.database) as store:
        store.read_now(lambda connection: judge_rows(connection, verdict))
    _judge_files(world, verdict)
    return verdict


def judge_rows(connection: sqlite3.Connection, verdict: Verdict, expected: int = 1) -> None:
    """Judge what the store holds of the ``expected`` sessions."""

    def count(sql: str) -> int:
        return int(connection.execute(sql).fetchone()[0])

    stored = sessions.select_recent(connection, 100)
    if len(stored) != expected:
        (verdict.doubled if stored else verdict.lost).append(f"{len(stored)} sessions")
    for session in stored:
        _judge_session(connection, session, verdict)
    if pending := count("SELECT count(*) FROM proposals WHERE status='pending'"):
        verdict.stranded.append(f"{pending} proposals wait")
    if doubles := count(
        "SELECT count(*) FROM (SELECT 1 FROM action_receipts WHERE terminal=1"
        " GROUP BY idempotency_key HAVING count(*)>1)"
    ):
        verdict.doubled.append(f"{doubles} receipts")
    verified = verify_chain.verify(connection)
    if not verified.ok:
        verdict.lost.append(f"the journal does not verify: {verified}")


def _judge_session(connection: sqlite3.Connection, session: Session, verdict: Verdict) -> None:
    result = session.result or {}
    if (session.status, result.get("status")) != ("completed", "done"):
        verdict.stranded.append(f"the session is {session.status} ({session.result})")
    for wave in waves.select_for_session(connection, session.session_id):
        if wave.phase != "completed":
            verdict.stranded.append(f"wave {wave.ordinal} is {wave.phase}")
    _judge_packets(connection, session, verdict)
    for action in outbox.select_for_session(connection, session.session_id):
        if action.phase not in ("confirmed", "failed_terminal", "dropped"):
            verdict.stranded.append(f"action {action.title} is {action.phase}")
    said = messages.select_for_session(connection, session.session_id, role="person")
    if len(said) != 1:
        (verdict.doubled if said else verdict.lost).append(f"the user's words, {len(said)} times")


def _judge_files(world: World, verdict: Verdict) -> None:
    root = world.root
    for name, text in (("calc.py", FIXED), ("notes.md", NOTES)):
        path = root / name
        if not path.exists() or path.read_text() != text:
            verdict.lost.append(f"{name} is not as it was to be")
    log = git(root, "log", "--format=%s").splitlines()
    _count("the commit", log.count("Add adds"), verdict)
    _count("the comment", len(list(world.github.glob("comment.????????"))), verdict)
    runs = (root / COUNTED).read_text().count("counted") if (root / COUNTED).exists() else 0
    with sqlite3.connect(locate_project(root).database) as connection:
        begun, ended = connection.execute(
            "SELECT sum(attempts), sum(phase='confirmed') FROM outbox_actions WHERE action_type='run'"
        ).fetchone()
    connection.close()
    if runs > (begun or 0):
        verdict.doubled.append(f"the command ran {runs} times in {begun} attempts")
    if runs < (ended or 0) or not ended:
        verdict.lost.append(f"the command ran {runs} times, and is said to have ended {ended}")
    if git(root, "status", "--porcelain"):
        verdict.stranded.append(f"git's status: {git(root, 'status', '--porcelain')}")
    left = [path.name for path in root.rglob("*") if path.name.endswith((".cockpit", ".lock"))]
    left = [name for name in left if name != ".cockpit"]
    if left:
        verdict.stranded.append(f"left behind: {', '.join(left)}")


def _count(what: str, times: int, verdict: Verdict) -> None:
    if times != 1:
        (verdict.doubled if times else verdict.lost).append(f"{what}, {times} times")
