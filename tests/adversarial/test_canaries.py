"""Canaries: secrets planted wherever text comes in are in no file that cockpit writes, of whatever kind.

A chain works in a project whose files, commands, models, agents and tasks all tell secrets. Then every file
of the state folder, the project, its worktrees, the configuration and the log is searched, archives and the
objects of git included, and whatever commands print or export; and what terminals are given, with the
sequences for titles of windows, notes and the clipboard.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import run_cockpit
from app.app_terminal import Terminal
from chains.chain_world import WORK, Chains
from commands.cli_world import PATIENCE_S
from sandbox_here import CONFINES
from state_for_tests import state_of
from tasks.taskrun_world import finish, git, turn

from cockpit.access.notices import terminal_note

pytestmark = pytest.mark.slow

CHANNELS = (
    *("file", "output", "words", "context", "summary", "verdict", "title", "description", "agent"),
    *("agent-words", "crash", "commit", "steering-output", "steering-errors", "steering-title"),
)
"""Where a secret comes from."""


def random_text(channel: str, kind: str, length: int) -> str:
    """Letters and digits that are the same in every run and look random."""
    body = hashlib.blake2b(f"{channel} {kind}".encode(), digest_size=64).hexdigest()
    letters = "".join(
        chr(ord("G") + int(pair[0], 16)) + pair[1] for pair in zip(*[iter(body)] * 2, strict=True)
    )
    return letters[:length]


def canaries(channel: str) -> dict[str, str]:
    """A secret of each kind, with its part that must not be found."""
    hexadecimal = hashlib.sha256(channel.encode()).hexdigest()
    base = {kind: random_text(channel, kind, 40) for kind in ("github", "key", "url", "pem", "jwt")}
    return {
        f"token ghp_{base['github'][:36]}": base["github"][:36],
        f"AWS_SECRET_ACCESS_KEY={base['key']}": base["key"],
        f"https://ada:{base['url'][:24]}@example.org/x": base["url"][:24],
        f"SECRET_KEY={hexadecimal}": hexadecimal,
        f"sk-ant-api03-{base['jwt']}": base["jwt"],
    }


def told(channel: str) -> str:
    """All of a channel's secrets in one line."""
    return " and ".join(canaries(channel))


def quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def scenario() -> str:
    """A model that reads the project's secrets, repeats them, and tells its own."""
    said = "Write part1\\\\b"
    first = f'text = "{quoted(told("words"))}"\n[[turn.call]]'
    reads = turn("implementer", "run", 'argv = ["cat", "secrets.env"], reason = "look"', said=said)
    purpose = quoted(told("context"))
    asks = (
        f'purpose = "{purpose}", question = "what?", scope = ["file:secrets.env"], escalation = ""'
    )
    return (
        reads.replace("[[turn.call]]", first, 1)
        + turn("implementer", "request_context", asks, when='called = ["run"]', said=said)
        + turn(
            "implementer",
            "write_file",
            'path = "part1.py", content = "x = 1\\n"',
            when='called = ["request_context"]',
            said=said,
        )
        + turn(
            "implementer",
            "git_commit",
            f'message = "Add part1, {quoted(told("commit"))}", paths = ["part1.py"]',
            when='called = ["write_file"]',
            said=said,
        )
        + finish("implementer", quoted(told("summary")), when='called = ["git_commit"]', said=said)
        + finish("spec reviewer", f"VERDICT: PASS\n{quoted(told('verdict'))}")
        + finish("quality reviewer", "VERDICT: PASS\nSound.")
    )


STEERING = ("0;", "2;", "9;", "777;notify;a;", "1;", "99;;", "52;c;", "7;file://")
"""How text begins that a terminal takes for its title, a note, the clipboard or its folder (OSC)."""
OSC = re.compile(rb"(?:\x1b\]|\xc2\x9d)((?:[^\x07\x1b\xc2]|\xc2[^\x9c\x9d])*)")
"""A sequence that steers a terminal, in 7 bits or in 8 (U+009D)."""


def steered(channel: str, most: int = len(STEERING)) -> str:
    """A channel's secrets where a terminal takes them for something else than text."""
    secrets = [*canaries(channel)]
    pairs = [(code, secrets[at % len(secrets)]) for at, code in enumerate(STEERING[:most])]
    return "".join(f"\x1b]{code}{secret}\x07" for code, secret in pairs)


AGENT = """
import sys
print(TOLD_IN_NOTES)
print(TOLD_ON_OUTPUT)
print(TOLD_IN_TITLES, file=sys.stderr)
print(TOLD_ON_ERRORS, file=sys.stderr)
sys.exit(7)
"""


Played = tuple[Chains, str, list[bytes]]


def on_terminal(world: Chains, *words: str, asks: bool = False) -> bytes:
    """Run ``cockpit`` on a terminal to its end; returns every byte that it wrote.

    With ``asks`` it first asks about what runs outside the sandbox, and the user agrees.
    """
    env = {**world.project.env, "TERM_PROGRAM": "iTerm.app"}  # a terminal that knows notes
    with Terminal(*words, cwd=world.root, env=env) as terminal:
        if asks:
            terminal.until("Start all the same?")
            terminal.press(b"y\r")
        terminal.ends()
        return terminal.wrote


def on_screen(world: Chains) -> bytes:
    """Open the screen and its board, where the task is whose title steers; returns what was drawn."""
    env = {**world.project.env, "COCKPIT_MODEL": "offline"}
    with Terminal(cwd=world.root, env=env) as screen:
        screen.until("ype a task:")
        screen.press(b"\x14")
        screen.until("Leak")
        screen.press(b"\x14")
        screen.pause()
        screen.press(b"\x04")
        screen.ends()
        return screen.wrote


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """The project after the chain, with all that was printed and all bytes that terminals were given."""
    folder = tmp_path_factory.mktemp("canaries")
    world = Chains.made(folder, 0)
    project, root = world.project, world.root
    secrets = "\n".join([*canaries("file"), *canaries("output")]) + "\n"
    (root / "secrets.env").write_text(secrets, encoding="utf-8")
    git(root, "add", ".")
    git(root, "commit", "-qm", "Settings")
    project.extra |= {
        "COCKPIT_LOG_JSON": str(folder / "log.jsonl"),
        "COCKPIT_REPORT": "always",
        "COCKPIT_NOTIFY": "terminal",
    }
    project.config.mkdir(exist_ok=True)
    agent = folder / "agent.py"
    agent.write_text(
        AGENT.replace("TOLD_ON_OUTPUT", repr(told("agent-words")))
        .replace("TOLD_ON_ERRORS", repr(told("agent")))
        .replace("TOLD_IN_NOTES", repr(steered("steering-output")))
        .replace("TOLD_IN_TITLES", repr(steered("steering-errors"))),
        encoding="utf-8",
    )
    (project.config / "config.toml").write_text(
        f'[runner.leaky]\ncommand = ["{sys.executable}", "{agent}"]\nformat = "claude"\nsandbox = false\n',
        encoding="utf-8",
    )
    printed = []

    def run(*words: str, stdin: str = "") -> str:
        done = run_cockpit.run(words, cwd=root, env=project.env, stdin=stdin, patience_s=PATIENCE_S)
        printed.append(f"$ {words[:2]}\n{done.stdout}{done.stderr}")
        return done.stdout

    run("tasks", "add", f"Write part1 {next(iter(canaries('title')))}", "--file", "part1.py", "--description",
        told("description"))  # fmt: skip
    model = ("--model", project.script(scenario()))
    shown = [on_terminal(world, *WORK, "--all", *model, asks=not CONFINES)]
    run("tasks", "add", f"Leak {steered('steering-title', 4)}", "--file", "part2.py")
    shown += [on_terminal(world, *WORK, "--task", "T-2", "--runner", "leaky"), on_screen(world)]
    for words in (
        ("journal", "--all", "--json"), ("sessions", "export", "last"), ("tasks", "export"),
        ("tasks", "T-1"), ("tasks", "handoff", "T-1"), ("chain", "1", "--report"),
        ("debug", "outbox"), ("debug", "packet", "explain"), ("proposals", "--all"), ("tasks", "wip", "T-2"),
        ("prune", "--older-than", "2999-01-01", "--journal"),
    ):  # fmt: skip
        run(*words)
    crash = "import sys; from cockpit.commands.report_error import report_error;"
    subprocess.run(
        [sys.executable, "-c", f"{crash} report_error(ValueError(sys.argv[1]))", told("crash")],
        cwd=root, env=project.env, check=True, capture_output=True,
    )  # fmt: skip
    return world, "\n".join(printed), shown


def files_written(world: Chains) -> Iterator[tuple[str, bytes]]:
    """Every file that cockpit may have written, with its content; archives unpacked."""
    folder = world.root.parent
    planted = {world.root / "secrets.env", folder / "agent.py", folder / "scenario.toml"}
    for top in (folder, state_of(world.root)):
        for path in sorted(top.rglob("*")):
            if path.is_symlink() or not path.is_file() or path in planted:
                continue
            if path.name == "secrets.env" and "worktrees" in path.parts:
                continue  # git's copy of the project's own file
            content = path.read_bytes()
            yield str(path), content
            if path.suffix == ".gz":
                yield f"{path} unpacked", gzip.decompress(content)


def messages_of_git(root: Path) -> bytes:
    """All commits and tags, and the blobs but for the project's own files."""
    listed = git(root, "cat-file", "--batch-all-objects", "--batch-check").splitlines()
    own = {git(root, "rev-parse", "HEAD:secrets.env")}
    names = [line.split()[0] for line in listed if line.split()[0] not in own]
    done = subprocess.run(
        ["git", "cat-file", "--batch"], cwd=root, input="\n".join(names).encode(),
        capture_output=True, check=True,
    )  # fmt: skip
    return done.stdout


@pytest.fixture(scope="module")
def sources(played: Played) -> list[tuple[str, bytes]]:
    """All that was written, and all that was printed, each under a name."""
    world, printed, shown = played
    written = [*files_written(world), ("git", messages_of_git(world.root))]
    assert len(written) > 20
    return [*written, ("output", printed.encode() + b"".join(shown))]


@pytest.mark.parametrize("channel", CHANNELS)
def test_no_secret_is_in_any_file_that_was_written(sources, channel):
    found = {
        (name, whole)
        for name, content in sources
        for whole, secret in canaries(channel).items()
        if secret.encode() in content
    }
    assert not found


def test_the_secrets_came_by(played: Played) -> None:
    """The chain did what it was to do, so that every channel was one."""
    world, printed, _ = played
    assert world.statuses()["T-1"] == "done", printed
    database = (state_of(world.root) / "cockpit.db").read_bytes()
    assert b"[masked:" in database
    exported = printed.partition("('journal', '--all')")[2]
    for action in ("context.fetched", "action.confirmed", "handoff.set", "runner.ended"):
        assert action in exported, action
    assert exported.count("[masked:github-token]") >= 5
    assert list((state_of(world.root) / "archive").glob("*.gz"))
    assert (world.root.parent / "log.jsonl").stat().st_size
    assert list((state_of(world.root) / "chains").glob("*.log"))
    assert "ValueError" in next(world.root.parent.rglob("errors.log")).read_text("utf-8")
    assert "Add part1" in git(world.root, "log", "--all", "--format=%B")
    assert list((world.root / ".cockpit" / "reports").iterdir())


def test_terminals_are_steered_by_nobody_else(played: Played) -> None:
    """No folder, no clipboard, no title and no note but cockpit's own: what waits, and the chain's end."""
    chain, task, screen = ([text.decode() for text in OSC.findall(each)] for each in played[2])
    assert len(chain) == 1 and chain[0].startswith("9;cockpit: ch-1 "), chain
    assert task == []
    kinds = {text.partition(";")[0] for text in screen}
    assert kinds <= {"2", "22"}, "the window's title and the pointer's shape"
    titles = {text.partition(";")[2] for text in screen if text.startswith("2;")}
    assert titles <= {"", f"cockpit · {played[0].root.name}"}, titles
    assert b"Runner leaky ended with exit code 7" in played[2][1]
    assert b"Leak" in played[2][2]


@pytest.mark.parametrize("code", STEERING)
def test_a_note_steers_nothing_and_tells_no_secret(code: str) -> None:
    for secret, part in canaries("note").items():
        hostile = f"\x1b]{code}{secret}\x07 \x9d{code}{secret}\x9c \x1b]{code}{secret}\x1b\\"
        written = terminal_note(hostile, {"TERM": "xterm-kitty"})
        assert len(OSC.findall(written.encode())) == 1 and written.startswith("\x1b]9;")
        assert part not in written and "[masked:" in written
