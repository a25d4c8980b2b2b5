"""What a command in the reading sandbox tries: to change, to reach out, to see what is secret."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sandbox_world import limited

from cockpit.act.sandbox.project_view import TooLarge, find_covers, names_only
from cockpit.act.sandbox.reading_sandbox import find_refusal, run_reading
from cockpit.act.workspace import Workspace

pytestmark = pytest.mark.slow

PROBES = r"""
import ctypes, json, os, platform, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
x86 = platform.machine() == "x86_64"
def call(number_x86, number_arm, *arguments):
    if libc.syscall(number_x86 if x86 else number_arm, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "syscall")
def write(path, mode="w"):
    with open(path, mode) as file:
        file.write("x")
def connect(family, address):
    with socket.socket(family) as opened:
        opened.settimeout(1)
        opened.connect(address)
def fifo(path):
    os.write(os.open(path, os.O_WRONLY | os.O_NONBLOCK), b"x")
def leaks(condition):
    if not condition:
        raise PermissionError("nothing")
def move(*names): os.rename(*names)
port, outside = int(sys.argv[1]), sys.argv[2]
PROBES = {
    "write: a new file": lambda: write("new.txt"),
    "write: an old file": lambda: write("app.py"),
    "write: append": lambda: write("app.py", "a"),
    "write: truncate": lambda: os.truncate("app.py", 0),
    "write: remove": lambda: os.unlink("app.py"),
    "write: rename": lambda: move("app.py", "b.py"),
    "write: chmod": lambda: os.chmod("app.py", 0o777),
    "write: setuid": lambda: os.chmod("app.py", 0o4755),
    "write: times": lambda: os.utime("app.py", (1, 1)),
    "write: link": lambda: os.link("app.py", "hard"),
    "write: symlink": lambda: os.symlink("app.py", "soft"),
    "write: folder": lambda: os.mkdir("folder"),
    "write: attribute": lambda: os.setxattr("app.py", "user.x", b"x"),
    "write: git hook": lambda: write(".git/hooks/pre-commit"),
    "write: through proc": lambda: write(f"/proc/self/cwd/new.txt"),
    "write: /tmp outside": lambda: leaks(os.path.exists(outside) and write(outside)),
    "write: system": lambda: write("/usr/bin/planted"),
    "write: kernel": lambda: write("/proc/sys/kernel/core_pattern"),
    "write: root": lambda: write("/planted"),
    "read: .env": lambda: open(".env").read(),
    "read: key file": lambda: open("deploy/server").read(),
    "read: keys folder": lambda: leaks(os.listdir(".ssh")),
    "read: link to .env": lambda: open("plain.txt").read(),
    "read: history": lambda: leaks(os.listdir(".git")),
    "read: passwords": lambda: open("/etc/passwd").read(),
    "read: home": lambda: leaks(os.listdir(os.path.expanduser("~")) != [".gitconfig"]),
    "read: root's home": lambda: open("/root/.bashrc").read(),
    "read: environment": lambda: leaks(any("hunter2" in each for each in os.environ.values())),
    "read: open files": lambda: leaks(len(os.listdir("/proc/self/fd")) > 4),
    "read: disks": lambda: leaks({"sda", "vda", "nvme0", "mem", "kmem"} & set(os.listdir("/dev"))),
    "processes: seen": lambda: leaks(len([n for n in os.listdir("/proc") if n.isdigit()]) > 3),
    "processes: signal": lambda: os.kill(int(sys.argv[3]), 0),
    "processes: ptrace": lambda: call(101, 117, 0, 0, 0, 0),
    "processes: memory": lambda: call(310, 270, os.getpid(), 0, 0, 0, 0, 0),
    "network: inet": lambda: connect(socket.AF_INET, ("127.0.0.1", port)),
    "network: outside": lambda: connect(socket.AF_INET, ("1.1.1.1", 53)),
    "network: names": lambda: socket.getaddrinfo("example.com", 80),
    "network: raw": lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1),
    "network: vsock": lambda: socket.socket(40, socket.SOCK_STREAM),
    "sockets: unix": lambda: connect(socket.AF_UNIX, "listening.sock"),
    "sockets: abstract": lambda: connect(socket.AF_UNIX, "\0cockpit-probe-" + sys.argv[3]),
    "sockets: any": lambda: socket.socket(socket.AF_UNIX),
    "pipes: of the project": lambda: fifo("pipe"),
    "pipes: below": lambda: fifo("deploy/pipe"),
    "pipes: new": lambda: os.mkfifo("/tmp/new"),
    "kernel: device": lambda: os.mknod("/tmp/disk", 0o60600, os.makedev(8, 0)),
    "kernel: keyctl": lambda: call(250, 219, 0, -3, 0),
    "kernel: add_key": lambda: call(248, 217, b"user", b"x", b"y", 1, -3),
    "kernel: unshare": lambda: call(272, 97, 0x10000000),
    "kernel: mount": lambda: call(165, 40, 0, b"/tmp", b"tmpfs", 0, 0),
    "kernel: chroot": lambda: os.chroot("/tmp"),
    "kernel: administrator": lambda: os.setuid(0) if os.getuid() else leaks(True),
    "kernel: io_uring": lambda: call(425, 425, 1, 0),
    "kernel: bpf": lambda: call(321, 280, 0, 0, 0),
    "terminal: open": lambda: open("/dev/tty", "w"),
}
through = []
for name, probe in PROBES.items():
    try:
        probe()
        through.append(name)
    except OSError:
        pass
socket.socketpair()
print(json.dumps([list(PROBES), through]))
"""

CLASSES = {
    "write": "write to the project, `/tmp`, the system, the kernel",
    "read": "read secrets, history, accounts, homes, environment, disks",
    "processes": "other processes: see, signal, trace",
    "network": "network",
    "sockets": "unix sockets",
    "pipes": "named pipes",
    "kernel": "kernel: devices, keys, namespaces, mounts, rights",
    "terminal": "terminal",
}


@pytest.fixture
def hostile(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The project with what is secret, and with doors to processes outside."""
    project.chmod(0o755)
    (project / "app.py").write_text("print(42)\n")
    (project / ".env").write_text("PASSWORD=hunter2\n")
    (project / "plain.txt").symlink_to(".env")
    (project / "deploy").mkdir()
    (project / "deploy" / "server").write_text("-----BEGIN PRIVATE KEY-----\nabc\n")
    (project / ".ssh").mkdir()
    (project / ".ssh" / "config").write_text("Host x\n")
    for folder in (project, project / "deploy"):
        os.mkfifo(folder / "pipe")
    with contextlib.ExitStack() as stack:
        # A reader waits at each pipe: a writer would reach it.
        for folder in (project, project / "deploy"):
            opened = os.open(folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
            stack.callback(os.close, opened)
        for address in (f"{project}/listening.sock", f"\0cockpit-probe-{os.getpid()}"):
            listening = stack.enter_context(socket.socket(socket.AF_UNIX))
            monkeypatch.chdir(project)
            listening.bind(os.path.relpath(address) if address[0] == "/" else address)
            listening.listen()
        yield project


async def read(ground: Workspace, *argv: str, environment: dict[str, str] | None = None):
    return await run_reading(
        ground.sandbox,
        argv,
        ground.root,
        {**ground.environment, **(environment or {})},
        timeout_s=60,
    )


async def test_nothing_gets_through(
    hostile: Path, ground: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attacks
) -> None:
    monkeypatch.setenv("COCKPIT_PROBE_SECRET", "hunter2")
    outside = tmp_path / "outside.txt"
    outside.write_text("as it was")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        words = (str(port), str(outside), str(os.getpid()))
        ended = await read(ground, sys.executable, "-c", PROBES, *words)
    assert ended.finished.ok, ended.finished.error_text
    names, through = json.loads(ended.finished.text)
    for kind, row in CLASSES.items():
        probes = [name for name in names if name.startswith(f"{kind}: ")]
        attacks(row, len(probes), [name for name in through if name in probes])
    assert outside.read_text() == "as it was"
    assert (hostile / "app.py").read_text() == "print(42)\n"
    assert not {each.name for each in hostile.iterdir()} & {
        "new.txt", "hard", "soft", "folder", "b.py",
    }  # fmt: skip


async def test_what_is_shown_is_what_runs(hostile: Path, ground: Workspace) -> None:
    """Bytecode next to a file, with a hash that nothing checks, is not that file."""
    make = (
        "import py_compile, pathlib; p = pathlib.Path('shown.py'); p.write_text('print(666)');"
        " py_compile.compile('shown.py', invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH);"
        " p.write_text('print(42)')"
    )
    subprocess.run([sys.executable, "-c", make], cwd=hostile, check=True, env={})
    ended = await read(
        ground, sys.executable, "-c", "import sys; sys.path.insert(0, '.'); import shown"
    )
    assert ended.finished.text == "42\n", ended.finished.error_text


async def test_limits_of_processes_and_output(hostile: Path, ground: Workspace) -> None:
    endless = await read(ground, "yes")
    assert endless.finished.truncated
    fork = "import os\nfor _ in range(60):\n os.fork() or __import__('time').sleep(30)"
    forks = await read(limited(ground, processes=20), sys.executable, "-S", "-c", fork)
    assert forks.passed or not forks.finished.ok


@pytest.mark.parametrize(
    ("argv", "refused"),
    [
        (("touch", "app.py"), True), (("cat", ".env"), True), (("git", "log"), True),
        (("git", "status"), False), (("false",), False), (("cat", "missing"), False),
    ],
)  # fmt: skip
async def test_only_a_refusal_becomes_a_proposal(
    argv: tuple[str, ...], refused: bool, hostile: Path, ground: Workspace
) -> None:
    assert bool(find_refusal(await read(ground, *argv))) is refused


def test_git_is_there_for_names_alone() -> None:
    assert names_only(("git", "status", "--short"))
    for line in (
        "git -c alias.x=!id x",
        "git status -v",
        "git show HEAD:.env",
        "git",
        "sh git status",
    ):
        assert not names_only(line.split()), line


def test_a_project_that_cannot_be_looked_through_is_not_shown(project: Path) -> None:
    for number in range(1_100):
        (project / f"{number}.pem").touch()
    with pytest.raises(TooLarge):
        find_covers(project, git=False)
