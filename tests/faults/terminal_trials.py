"""Trials of a screen whose terminal goes away: at a random moment, in a random way, whatever it is doing.

A trial is a project, ``cockpit`` on a pseudo-terminal of its own, a moment of its life, and the end of the
terminal. Then no process of it may be left, what was typed must be on disk, and its session must go on to
its end.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import select
import shutil
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import run_cockpit
from faults.session_trials import Verdict
from state_for_tests import kept_variables

from cockpit.core.project_paths import locate_project

PATIENCE_S = 60.0
MARK = "COCKPIT_TERMINAL_TRIAL"
"""An environment variable by which every process of a trial is found."""

SCENARIO = """
[[turn]]
pace = 0.02
text = "WORDS"
[[turn.call]]
name = "run"
arguments = { argv = ["sleep", "600"], reason = "wait" }
[[turn]]
when = { contains = ["was interrupted"] }
text = "I begin again."
[[turn.call]]
name = "write_file"
arguments = { path = "notes.md", content = "# Notes\\n" }
[[turn]]
when = { called = ["write_file"] }
text = "That is all."
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "Notes written." }
""".replace("WORDS", " ".join(f"word{number}" for number in range(60)))

MOMENTS = (
    "streaming", "suspended", "editor", "not reading", "command", "dialog", "palette", "after editor",
    "resizing", "start", "idle", "typing",
)  # fmt: skip
WAYS = ("closed", "silent", "hangup", "terminate", "shell")
"""How a terminal ends: closed with a signal from the kernel, closed without one, by a signal alone, and
closed under a shell whose job the program is."""
DRAFT = "half a thought"


@dataclass
class Trial:
    """What one trial tries, drawn from its seed."""

    seed: int
    moment: str = field(init=False)
    way: str = field(init=False)
    delay_s: float = field(init=False)

    def __post_init__(self) -> None:
        dice = random.Random(self.seed)
        self.moment = MOMENTS[self.seed % len(MOMENTS)]
        self.way = dice.choice(WAYS)
        if self.moment == "suspended":
            self.way = "shell"  # without one, Ctrl+Z suspends nothing
        self.delay_s = dice.random() * (1.0 if self.moment == "start" else 0.3)

    def __str__(self) -> str:
        return f"{self.seed} ({self.moment}, {self.way}, {self.delay_s:.2f} s)"


@dataclass
class Screen:
    """``cockpit WORDS`` on a pseudo-terminal."""

    words: Sequence[str]
    root: Path
    env: dict[str, str]
    way: str
    wrote: bytes = b""
    main: int = -1
    program: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.main, end = os.openpty()
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        is_silent = self.way == "silent"

        def control() -> None:
            if not is_silent:
                fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        words = [*run_cockpit.PROGRAM, *self.words]
        if self.way == "shell":
            words = ["bash", "--norc", "--noprofile", "-i"]
        self.program = subprocess.Popen(
            words, stdin=end, stdout=end, stderr=end, cwd=self.root, env=self.env,
            start_new_session=True, preexec_fn=control,
        )  # fmt: skip
        os.close(end)
        if self.way == "shell":
            self.press(" ".join([*run_cockpit.PROGRAM, *self.words]).encode() + b"\r")

    def press(self, keys: bytes) -> None:
        os.write(self.main, keys)

    def read(self, patience_s: float) -> bool:
        ready, _, _ = select.select([self.main], [], [], patience_s)
        if not ready:
            return True
        try:
            chunk = os.read(self.main, 65536)
        except OSError:
            return False
        self.wrote += chunk
        return bool(chunk)

    def until(self, *texts: str, after: int = 0) -> int:
        deadline = time.monotonic() + PATIENCE_S
        while not any(text.encode() in self.wrote[after:] for text in texts):
            assert time.monotonic() < deadline, f"{texts!r} never came: {self.wrote[-1500:]!r}"
            assert self.read(1.0), f"it ended before {texts!r}: {self.wrote[-1500:]!r}"
        return len(self.wrote)

    def watch(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and self.read(left):
            continue

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.main, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def list_processes(mark: str) -> dict[int, str]:
    """Return the processes of a trial that run, by pid, with their command lines."""
    running = {}
    wanted = f"{MARK}={mark}".encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if wanted not in (entry / "environ").read_bytes().split(b"\0"):
                continue
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            if state not in "ZX":
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                running[int(entry.name)] = f"{state} {line[:120]}"
    return running


def make_project(folder: Path) -> dict[str, str]:
    """Make a project with a script; return the environment of its trials."""
    root = folder / "calc"
    root.mkdir(parents=True)
    (root / "calc.py").write_text("def add(a, b):\n    return a + b\n")
    (folder / "scenario.toml").write_text(SCENARIO)
    editor = folder / "editor.sh"
    editor.write_text(
        'if [ -e "$0.wait" ]; then printf %s "edited in the editor" > "$1"; echo THE EDITOR; sleep 600; fi\n'
    )
    user = folder / "user"
    user.mkdir()
    (user / "config.toml").write_text('[approval]\npolicy = "all"\n')
    git = os.environ.copy()
    for words in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-qm", "begin")):
        who = ("-c", "user.name=T", "-c", "user.email=t@example.invalid")
        subprocess.run(["git", *who, *words], cwd=root, env=git, check=True)
    (folder / "home").mkdir()
    return {
        **kept_variables(),
        "TERM": "xterm-256color",
        "HOME": str(folder / "home"),
        "COCKPIT_CONFIG_DIR": str(user),
        "COCKPIT_STATE_DIR": str(folder / "state"),
        "COCKPIT_MODEL": f"script:{folder / 'scenario.toml'}",
        "EDITOR": f"sh {editor}",
        "PS1": "shell> ",
    }


def begin(trial: Trial, screen: Screen, folder: Path) -> str:
    """Bring the screen to the trial's moment; return the draft that must be on disk after it."""
    if trial.moment == "start":
        screen.watch(trial.delay_s)
        return ""
    screen.until("ype a task:")
    if trial.moment in ("editor", "after editor"):
        wait = folder / "editor.sh.wait"
        if trial.moment == "editor":
            wait.touch()
        at = len(screen.wrote)
        screen.press(b"\x07")
        screen.until("THE EDITOR" if trial.moment == "editor" else "1049h", after=at)
        if trial.moment == "editor":
            screen.watch(trial.delay_s)
            return "edited in the editor"
        # What is typed before the screen has its terminal again is echoed by the kernel, and not read yet.
        screen.until("ype a task:", after=screen.wrote.index(b"1049h", at))
    if trial.moment in ("streaming", "command", "resizing", "not reading", "suspended"):
        screen.press(b"fix the notes\r")
        screen.until("sleep 600" if trial.moment == "command" else "word3")
    at = len(screen.wrote)
    screen.press(DRAFT.encode())
    screen.until("thought", "ought", after=at)
    at = len(screen.wrote)
    if trial.moment == "dialog":
        screen.press(b"\x1bOP")
        screen.until("Escape", after=at)
    elif trial.moment == "palette":
        screen.press(b"\x10")
        screen.until("earch for commands", after=at)
    elif trial.moment == "suspended":
        screen.press(b"\x1a")
        screen.until("shell> ", after=at)
    elif trial.moment == "resizing":
        for step in range(12):
            screen.resize(20 + step, 60 + 9 * step)
            screen.watch(0.01)
    elif trial.moment == "not reading":
        # The terminal does not read: the screen fills its queue.
        select.select([], [], [], trial.delay_s)
        return DRAFT
    screen.watch(trial.delay_s)
    return DRAFT


def end_terminal(trial: Trial, screen: Screen) -> None:
    """Let the terminal go away."""
    if trial.way in ("hangup", "terminate"):
        number = signal.SIGHUP if trial.way == "hangup" else signal.SIGTERM
        screen.program.send_signal(number)
        return
    os.close(screen.main)
    screen.main = -1


def wait_for_end(mark: str, screen: Screen, patience_s: float) -> tuple[float, dict[int, str]]:
    """Return after how many seconds the last process had ended, and what runs after ``patience_s``."""
    began = time.monotonic()
    while running := list_processes(mark):
        if time.monotonic() - began > patience_s:
            break
        if screen.main >= 0:
            screen.read(0.05)  # a terminal that is only signalled reads on
        else:
            time.sleep(0.05)
        screen.program.poll()
    return time.monotonic() - began, running


def try_terminal(
    folder: Path,
    seed: int,
    *,
    report: Callable[[Trial, float], object] = lambda trial, seconds: None,
) -> Verdict:
    """Take the terminal away from a screen; ``report`` gets the seconds until all of it had ended."""
    trial = Trial(seed)
    shutil.rmtree(folder, ignore_errors=True)
    env = make_project(folder)
    mark = f"{os.getpid()}-{seed}"
    env[MARK] = mark
    root = folder / "calc"
    screen = Screen((), root, env, trial.way)
    verdict = Verdict()
    try:
        draft = begin(trial, screen, folder)
        end_terminal(trial, screen)
        seconds, left = wait_for_end(mark, screen, PATIENCE_S)
        report(trial, seconds)
        verdict.stranded += [f"{pid} still runs: {line}" for pid, line in left.items()]
    finally:
        for pid in list_processes(mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        screen.program.kill()
        screen.program.wait()
        if screen.main >= 0:
            os.close(screen.main)
    with state_of(folder):
        drafts = locate_project(root).state.glob("draft-*.txt")
        kept = "".join(path.read_text("utf-8") for path in drafts)
    if kept != draft:
        verdict.lost.append(f"the draft {draft!r}: {kept!r} is on disk")
    verdict.stranded += resume(root, env)
    if not verdict.lost and not verdict.stranded:
        shutil.rmtree(folder)
    return verdict


@contextlib.contextmanager
def state_of(folder: Path):  # type: ignore[no-untyped-def]
    """Keep cockpit's state in the folder of a trial."""
    before = os.environ.get("COCKPIT_STATE_DIR")
    os.environ["COCKPIT_STATE_DIR"] = str(folder / "state")
    try:
        yield
    finally:
        os.environ.pop("COCKPIT_STATE_DIR")
        if before is not None:
            os.environ["COCKPIT_STATE_DIR"] = before


def resume(root: Path, env: dict[str, str]) -> list[str]:
    """Continue the session that the trial left; return what keeps it from its end."""
    env = {**env, MARK: ""}
    if not root.is_dir():
        return []
    with state_of(root.parent):
        if not locate_project(root).database.is_file():
            return []  # the terminal went away before there was a store
    listed = run_cockpit.run(("sessions", "--json"), cwd=root, env=env, patience_s=PATIENCE_S)
    if listed.returncode != 0:
        return [f"sessions list: {listed.stderr}"]
    problems = []
    for session in json.loads(listed.stdout):
        if session["status"] == "completed":
            continue
        words = ("run", "--continue", session["session_id"], "--approve", "all")
        done = run_cockpit.run(words, cwd=root, env=env, patience_s=PATIENCE_S)
        if done.returncode != 0:
            problems.append(
                f"{session['session_id']} does not resume: {done.stderr or done.stdout}"
            )
    verified = run_cockpit.run(("debug", "journal"), cwd=root, env=env, patience_s=PATIENCE_S)
    if verified.returncode != 0:
        problems.append(f"journal verify: {verified.stdout}{verified.stderr}")
    return problems
