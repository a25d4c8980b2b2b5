"""What a command tries from inside the sandbox: refused, and possible where the defence is taken out."""

from __future__ import annotations

import errno
import os
import platform
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from adversarial.sandbox.sandbox_world import (
    IS_ADMINISTRATOR,
    NO_FILTER,
    OLD_KERNEL_NAMES,
    SHARED_NETWORK,
    SHARED_PROCESSES,
    answer,
    both,
    drop,
    loosened,
    swap,
)

from cockpit.access.run_program import run_program
from cockpit.act.sandbox import bubblewrap, seccomp_filter
from cockpit.act.sandbox.git_places import find_git_places
from cockpit.act.sandbox.run_confined import run_confined
from cockpit.act.workspace import Workspace, open_workspace

pytestmark = pytest.mark.slow

READ = """
import sys
try: print(open(sys.argv[1]).read())
except OSError as error: print(type(error).__name__)
"""
WRITE = """
import sys
try:
    with open(sys.argv[1], "a") as file: file.write("x")
    print("written")
except OSError as error: print(error.errno)
"""
CALL = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
code = libc.syscall(*(int(word) for word in sys.argv[1:]))
print("done" if code >= 0 else ctypes.get_errno())
"""
CONNECT = """
import socket, sys
kind, place, port = sys.argv[1:4]
try:
    if kind == "unix": socket.socket(socket.AF_UNIX).connect(place.replace("@", chr(0)))
    else: socket.create_connection((place, int(port)), 5)
    print("connected")
except OSError as error: print(type(error).__name__)
"""


async def test_a_link_leads_to_nothing_outside(ground: Workspace, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("private")
    (ground.root / "link").symlink_to(secret)
    assert await answer(ground, READ, "link/key") == "FileNotFoundError"
    assert await answer(ground, READ, f"/proc/self/root{secret}/key") == "FileNotFoundError"
    assert await answer(ground, READ, f"/proc/1/root{secret}/key") == "FileNotFoundError"
    shown = swap(["--chdir"], ["--ro-bind", str(secret), str(secret), "--chdir"])
    assert await answer(loosened(ground, shown), READ, "link/key") == "private"


async def test_a_link_of_the_project_to_a_toolchain_shows_no_folder(ground, tmp_path):
    secret = tmp_path / "work"
    (secret / "lib").mkdir(parents=True)
    (secret / "bin").mkdir()
    for name in ("bin/python3", "notes"):
        (secret / name).write_text("private")
    for venv in (ground.root / ".venv", ground.root / "venv"):
        (venv / "bin").mkdir(parents=True)
        (venv / "pyvenv.cfg").write_text("")
        (venv / "bin" / "python3").symlink_to(secret / "bin" / "python3")
    path = f"{ground.root}/.venv/bin:{ground.environment['PATH']}"
    activated = await open_workspace(ground.root, environment={**os.environ, "PATH": path})
    assert await answer(ground, READ, secret / "notes") == "FileNotFoundError"
    assert await answer(activated, READ, secret / "notes") == "FileNotFoundError"


async def test_a_gitdir_file_shows_no_folder_that_is_no_repository(ground, tmp_path):
    secret = tmp_path / "secret"
    (secret / "objects").mkdir(parents=True)
    (secret / "notes").write_text("private")
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {secret}\n")
    assert find_git_places(tree) is None
    # A private folder that names somebody's folder as the common one.
    (tree / "fake").mkdir()
    (tree / "fake" / "HEAD").write_text("ref: refs/heads/main\n")
    (tree / "fake" / "commondir").write_text(f"{secret}\n")
    (tree / ".git").write_text("gitdir: fake\n")
    assert find_git_places(tree) is None


async def test_nothing_types_into_a_terminal(ground: Workspace) -> None:
    script = """
import fcntl, os, pty, termios
child, terminal = pty.fork()
if child == 0:
    try: fcntl.ioctl(0, termios.TIOCSTI, b"x"); os._exit(0)
    except OSError as error: os._exit(error.errno)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert await answer(ground, script) == str(errno.EPERM)
    # A kernel may refuse it as well, with another reason.
    assert await answer(loosened(ground, NO_FILTER), script) != str(errno.EPERM)
    assert await answer(ground, READ, "/dev/tty") == "OSError"


async def test_no_process_outside_is_seen_signalled_or_traced(ground: Workspace) -> None:
    victim = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    script = """
import ctypes, os, sys
pid = int(sys.argv[1])
try: os.kill(pid, 0); print("reached")
except ProcessLookupError: print("none")
print(os.path.exists(f"/proc/{pid}/root"), sum(name.isdigit() for name in os.listdir("/proc")) < 6)
"""
    try:
        assert (await answer(ground, script, victim.pid)).split() == ["none", "False", "True"]
        open_ground = loosened(ground, SHARED_PROCESSES)
        assert (await answer(open_ground, script, victim.pid)).split()[0] == "reached"
    finally:
        victim.send_signal(signal.SIGKILL)
        victim.wait()
    if platform.machine() in ("x86_64", "aarch64"):
        trace = 101 if platform.machine() == "x86_64" else 117
        assert await answer(ground, CALL, trace, 0, 0, 0, 0) == str(errno.EPERM)
        assert await answer(loosened(ground, NO_FILTER), CALL, trace, 0, 0, 0, 0) == "done"


NEW_USER = 0x10000000


async def test_no_namespace_inside_by_either_defence(ground: Workspace) -> None:
    script = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print("done" if libc.unshare(0x10000000) == 0 else ctypes.get_errno())
"""
    assert await answer(ground, script) == str(errno.EPERM)
    assert await answer(loosened(ground, OLD_KERNEL_NAMES), script) == "done"
    closed = drop("--disable-userns")
    assert await answer(loosened(ground, closed), script) == str(errno.EPERM)
    if "--disable-userns" in ground.sandbox.options:
        assert await answer(loosened(ground, NO_FILTER), script) == str(errno.ENOSPC)


async def test_system_calls_that_no_build_needs_are_refused(ground: Workspace) -> None:
    if platform.machine() not in ("x86_64", "aarch64"):
        assert seccomp_filter.filter_program() is None  # and the proposal says so
        return
    for number in (425, 435):  # io_uring, clone3
        assert await answer(ground, CALL, number, 0, 0, 0) == str(errno.ENOSYS), number
    assert await answer(loosened(ground, NO_FILTER), CALL, 425, 0, 0, 0) != str(errno.ENOSYS)
    # mount and keyctl, a system call of another numbering, and clone with a new user's namespace.
    calls = (
        ((165,), (250,), (56, NEW_USER | 17)) if platform.machine() == "x86_64" else ((40,), (219,))
    )
    for words in calls:
        assert await answer(ground, CALL, *words, 0, 0, 0, 0) == str(errno.EPERM), words


def test_the_filter_exists_for_both_architectures_and_no_other() -> None:
    x86, arm = (seccomp_filter.filter_program(name) for name in ("x86_64", "aarch64"))
    assert x86 and arm and x86 != arm and len(x86) % 8 == len(arm) % 8 == 0
    assert seccomp_filter.filter_program("riscv64") is None


async def test_only_common_families_of_sockets(ground: Workspace) -> None:
    script = """
import socket, sys
try: socket.socket(int(sys.argv[1]), socket.SOCK_STREAM); print("made")
except OSError as error: print(error.errno)
"""
    for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX):
        assert await answer(ground, script, int(family)) == "made"
    vsock, unsupported = 40, str(errno.EAFNOSUPPORT)
    assert await answer(ground, script, vsock) == unsupported


@pytest.fixture
def listeners() -> Iterator[tuple[str, Path, int]]:
    """Services outside: an abstract socket, one with a path, one on the loopback."""
    with (
        tempfile.TemporaryDirectory(dir="/tmp", prefix="cockpit-") as folder,
        socket.socket(socket.AF_UNIX) as first,
        socket.socket(socket.AF_UNIX) as second,
        socket.create_server(("127.0.0.1", 0)) as third,
    ):
        path = Path(folder, "listening")
        first.bind(f"\0{path.parent.name}")
        second.bind(str(path))
        first.listen()
        second.listen()
        yield path.parent.name, path, third.getsockname()[1]


async def test_no_service_outside_answers(ground, listeners):
    abstract, path, port = listeners
    assert await answer(ground, CONNECT, "unix", f"@{abstract}", 0) == "ConnectionRefusedError"
    assert await answer(ground, CONNECT, "unix", path, 0) == "FileNotFoundError"
    assert await answer(ground, CONNECT, "ip", "127.0.0.1", port) == "ConnectionRefusedError"
    for place in ("169.254.169.254", "192.0.2.1"):
        assert await answer(ground, CONNECT, "ip", place, 80) == "OSError"  # unreachable
    shared = loosened(ground, SHARED_NETWORK)
    assert await answer(shared, CONNECT, "unix", f"@{abstract}", 0) == "connected"
    assert await answer(shared, CONNECT, "ip", "127.0.0.1", port) == "connected"
    listed = "import os; print(os.listdir('/run'), os.path.exists('/tmp/.X11-unix'))"
    assert await answer(ground, listed) == "[] False"


async def test_nothing_but_the_three_streams_is_inherited(ground, tmp_path):
    script = "import os; print(sorted(map(int, os.listdir('/proc/self/fd')))[:-1])"
    with (tmp_path / "open").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        assert await answer(ground, script) == "[0, 1, 2]"
        kept = await run_program(
            (sys.executable, "-c", script), cwd=tmp_path, timeout_s=60, files=(file.fileno(),)
        )
    assert str(file.name) and kept.text.strip() != "[0, 1, 2]"


async def test_the_environment_is_a_list_of_names(project: Path) -> None:
    planted = {
        "MY_DB": "postgres://me:pw@db/x", "STRIPE_LIVE": "sk", "GIT_DIR": "/x", "DISPLAY": ":0",
        "SSH_AUTH_SOCK": "/run/x", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/user/1/bus",
        "XDG_RUNTIME_DIR": "/run/user/1", "DOCKER_HOST": "unix:///x", "LD_PRELOAD": "x",
    }  # fmt: skip
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    given = {**os.environ, "PATH": path, **planted}
    ground = await open_workspace(project, environment=given)
    names = await answer(ground, "import os; print(' '.join(os.environ))")
    assert not {*planted} & {*names.split()}
    assert {"PATH", "HOME", "TMPDIR"} <= {*names.split()}


async def test_bytecode_that_was_planted_in_the_project_does_not_run(
    ground: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Python has compiled elsewhere is used, and nothing that it compiles is left in the project."""
    plant = (
        "import py_compile, pathlib; p = pathlib.Path('shown.py'); p.write_text('print(666)');"
        " py_compile.compile('shown.py', invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH);"
        " p.write_text('print(42)'); pathlib.Path('other.py').touch()"
    )
    subprocess.run([sys.executable, "-c", plant], cwd=ground.root, check=True, env={})
    cache = ground.root / "__pycache__"
    cover = ["--tmpfs", str(cache), "--remount-ro", str(cache)]

    async def run(where: Workspace) -> list[str]:
        """As a project's tests are run: with its folder on the path, and Python's variables obeyed."""
        script = "import shown, other, sys; print(sys.pycache_prefix)"
        argv = (sys.executable, "-c", script)
        ended = await run_confined(where.sandbox, argv, where.root, where.environment, timeout_s=60)
        assert ended.finished.ok, ended.finished.error_text
        return ended.finished.text.split()

    assert await run(ground) == ["42", "None"]
    assert len(list(cache.iterdir())) == 1
    assert await run(loosened(ground, swap(cover, []))) == ["666", "None"]
    # Where not all can be covered, none is used.
    monkeypatch.setattr(bubblewrap, "MOST_ENTRIES", 1)
    assert await run(ground) == ["42", "/tmp/pycache"]


GIT_FILES = (
    *("config", "hooks/pre-commit", "commondir", "HEAD", "info/attributes", "config.worktree"),
)


async def test_the_repository_cannot_be_written(ground: Workspace) -> None:
    (ground.root / ".git" / "hooks").mkdir(exist_ok=True)
    git = str(ground.root / ".git")
    open_ground = loosened(ground, swap(["--ro-bind", git, git], ["--bind", git, git]))
    for name in GIT_FILES:
        assert await answer(ground, WRITE, f".git/{name}") == str(errno.EROFS), name
    assert await answer(open_ground, WRITE, ".git/info/planted") == "written"
    move = "import os\ntry: os.rename('.git', 'away'); print('moved')\nexcept OSError as e: print(e.errno)"
    assert await answer(ground, move) == str(errno.EBUSY)


async def test_settings_are_shown_without_credentials(ground: Workspace) -> None:
    config = ground.root / ".git" / "config"
    token = "ghp_" + "a1B2" * 9
    config.write_text(
        config.read_text()
        + f'[remote "origin"]\n\turl = https://me:{token}@example.org/x.git\n'
        + f'[http "https://example.org"]\n\textraheader = Authorization: Basic {token}\n'
    )
    shown = await answer(ground, READ, ".git/config")
    assert token not in shown and "https://example.org/x.git" in shown and "Ada" in shown
    assert token in config.read_text()


async def test_the_kernels_settings_and_the_administrators_files_are_shut(ground):
    may = "import os, sys; print(os.access(sys.argv[1], int(sys.argv[2])))"
    pattern = "/proc/sys/kernel/core_pattern"
    assert await answer(ground, may, pattern, os.W_OK) == "False"
    open_ground = loosened(ground, swap(["--remount-ro", "/proc"], []))
    # Others than the administrator could not write it without the sandbox either.
    assert await answer(open_ground, may, pattern, os.W_OK) == str(IS_ADMINISTRATOR)
    assert await answer(ground, READ, "/etc/shadow") in ("", "PermissionError")


async def test_no_capability_is_left_and_none_can_be_gained(ground: Workspace) -> None:
    script = """
for line in open("/proc/self/status"):
    if line.startswith(("Cap", "NoNewPrivs")): print(line.split()[1])
"""
    assert (await answer(ground, script)).split() == ["0000000000000000"] * 5 + ["1"]
    if IS_ADMINISTRATOR:
        kept = both(drop("--cap-drop"), drop("--disable-userns"))
        assert (await answer(loosened(ground, kept), script)).split()[2] != "0000000000000000"
    assert await answer(ground, WRITE, "/made") == str(errno.EROFS)
    assert await answer(ground, WRITE, "/etc/made") == str(errno.EROFS)


async def test_our_state_is_not_there(ground: Workspace) -> None:
    state = ground.root / ".cockpit" / "state"
    state.mkdir(parents=True)
    (state / "cockpit.db").write_text("the store")
    assert await answer(ground, READ, state / "cockpit.db") == "FileNotFoundError"
    assert await answer(ground, WRITE, state / "planted") == str(errno.EROFS)
