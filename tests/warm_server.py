"""The server behind ``warm.py``: ``python warm_server.py FOLDER`` forks a process for each that is asked for.

It listens on ``FOLDER/socket`` until stdin is closed, and loads cockpit at the first request.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import marshal
import os
import pkgutil
import random
import runpy
import selectors
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

LOAD = b"\xff" * 4
"""In the place of a length: the rest is the name of a module to load, and perhaps of its function to call."""
SESSION, GROUP = 2, 1
"""What the client leads, and so the process: a session with its process group, a group, or (0) neither."""

_LARGE, _COLLAPSE = 2 << 20, 25
"""The size of a large page, and what ``madvise`` calls the making of some (``MADV_COLLAPSE``)."""

_UNLOADED = ("cockpit.__main__", "cockpit.app", "cockpit.commands.sessions.screen")
"""What only a screen needs, or what is run under another name."""


def serve(folder: Path) -> None:
    """Fork whatever is asked for, until stdin is closed."""
    # What a process from here starts with its own interpreter comes from here as well.
    sys.executable = str(folder / "python")
    looker = selectors.DefaultSelector()
    ended, ends = os.pipe()
    os.set_blocking(ends, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(ends, warn_on_full_buffer=False)
    children: dict[int, socket.socket] = {}
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(folder / "socket"))
        door.listen(64)
        looker.register(door, selectors.EVENT_READ, lambda: _take(door, looker, children))
        looker.register(ended, selectors.EVENT_READ, lambda: _bury(ended, looker, children))
        looker.register(sys.stdin, selectors.EVENT_READ, lambda: _end(children))
        while True:
            run_due(looker)


def run_due(looker: selectors.BaseSelector) -> None:
    """Do what is due, but not what an earlier one has closed: its number may be another's now."""
    for key, _ in looker.select():
        if looker.get_map().get(key.fd) is key:
            key.data()


def _end(children: dict[int, socket.socket]) -> None:
    """End with the test run, and with what it left running."""
    for pid in children:
        os.kill(pid, signal.SIGKILL)
    os._exit(0)


def _take(
    door: socket.socket, looker: selectors.BaseSelector, children: dict[int, socket.socket]
) -> None:
    """Read what a client asks for, and do it."""
    line, _ = door.accept()
    _load()
    head, handles, _, _ = socket.recv_fds(line, 4, 3)
    if head == LOAD:
        _load_more(line)
        return
    length = int.from_bytes(head, "big")
    body = _receive(line, length)
    if head and len(body) == length:
        leads, ignored, words, cwd, env = marshal.loads(body)
        pid = os.fork()
        if pid == 0:
            _become(leads, ignored, handles)
            _run(words, cwd, env)
        children[pid] = line
        _send(line, pid)
        looker.register(line, selectors.EVENT_READ, lambda: _client_gone(line, pid, leads, looker))
    else:
        line.close()  # the client was killed while it asked
    for handle in handles:
        os.close(handle)


def _receive(line: socket.socket, length: int) -> bytes:
    """Read so many bytes, or to the end."""
    body = b""
    while len(body) < length and (chunk := line.recv(length - len(body))):
        body += chunk
    return body


def _client_gone(line: socket.socket, pid: int, leads: int, looker: selectors.BaseSelector) -> None:
    """Kill the process of a client that was killed, and the group that it leads."""
    looker.unregister(line)
    kill: Callable[[int, int], None] = os.killpg if leads else os.kill
    try:
        kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _bury(ended: int, looker: selectors.BaseSelector, children: dict[int, socket.socket]) -> None:
    """Send the clients of the processes that have ended their exit codes."""
    os.read(ended, 4_096)
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        line = children.pop(pid)
        if line in looker.get_map():
            looker.unregister(line)
        _send(line, os.waitstatus_to_exitcode(status))
        line.close()


def _send(line: socket.socket, number: int) -> None:
    try:
        line.sendall(f"{number}\n".encode())
    except (BrokenPipeError, ConnectionResetError):
        return  # nobody waits for it any more


_loaded = False
_more: set[str] = set()
"""What was loaded besides, as it was asked for."""


def _load() -> None:
    global _loaded, state_for_tests
    if _loaded:
        return
    _loaded = True
    # In a new environment most is compiled here, for the others as well. Forks write nothing.
    sys.dont_write_bytecode = False
    import certificates
    import known_checkouts
    import new_stores
    import present_user
    import state_for_tests

    import cockpit
    from cockpit.observe.count_tokens import count_tokens

    for module in pkgutil.walk_packages(cockpit.__path__, "cockpit."):
        if not module.name.startswith(_UNLOADED):
            importlib.import_module(module.name)
    # Of agents that speak the protocol, and of cockpit as one: its records take half a second to build.
    importlib.import_module("acp.connection")
    importlib.import_module("numpy.ma")  # by np.unique, where the facts of a session are alike
    count_tokens("loads the vocabulary")
    new_stores.install()
    known_checkouts.install()
    certificates.install()
    present_user.install()
    # A session has signals of its own, and leaves none.
    on_signal = signal.set_wakeup_fd(-1)
    importlib.import_module("warm_session").run_session()
    signal.set_wakeup_fd(on_signal, warn_on_full_buffer=False)
    _freeze()


def _freeze() -> None:
    """Let what is loaded stay as it is: a fork copies each page that it writes to."""
    gc.set_threshold(50_000, 20, 20)  # as for every command
    gc.collect()
    gc.freeze()
    _use_large_pages()


def _use_large_pages() -> None:
    """Put the memory in large pages: a fork copies a page table of a few dozen entries, in place of 20,000.

    Linux does that since 6.1; elsewhere memory stays as it is.
    """
    try:
        areas = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
        advise = ctypes.CDLL(None).madvise
    except (OSError, AttributeError):
        return
    for area in areas:
        place, rights, _, _, inode, *name = area.split()
        start, end = (int(bound, 16) for bound in place.split("-"))
        start, end = -(-start // _LARGE) * _LARGE, end // _LARGE * _LARGE
        if rights == "rw-p" and inode == "0" and name in ([], ["[heap]"]) and start < end:
            advise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _COLLAPSE)


def _load_more(line: socket.socket) -> None:
    with line, line.makefile("rb") as asked:
        name = asked.read().decode()
        if name not in _more:
            _more.add(name)
            module, _, function = name.partition(":")
            loaded = importlib.import_module(module)
            if function:
                getattr(loaded, function)()
            _freeze()
        _send(line, 0)


def _become(leads: int, ignored: list[int], handles: list[int]) -> None:
    """Take the client's streams, signals and place among processes; keep nothing else that is open here."""
    sys.dont_write_bytecode = True
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
    if leads == SESSION:
        os.setsid()
    elif leads == GROUP:
        os.setpgid(0, 0)
    kept = [os.dup2(handle, number) for number, handle in enumerate(handles)]
    os.closerange(len(kept), 1_024)


def _run(words: list[str], cwd: str, env: dict[str, str]) -> None:
    """What ``python WORDS`` does; never returns."""
    code = 1
    try:
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(env)
        state_for_tests.trust_everything()
        # What the server has read from its own environment and made of chance.
        tempfile.tempdir = None
        time.tzset()
        random.seed()
        sys.stdin = sys.__stdin__ = os.fdopen(0, encoding="utf-8")
        sys.stdout = sys.__stdout__ = os.fdopen(1, "w", encoding="utf-8")
        if env.get("PYTHONUNBUFFERED"):
            sys.stdout.reconfigure(write_through=True)
        sys.stderr = os.fdopen(2, "w", 1, encoding="utf-8", errors="backslashreplace")
        sys.__stderr__ = sys.stderr
        code = _main(words)
        sys.stdout.flush()
        sys.stderr.flush()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
    finally:
        os._exit(code)


def _main(words: list[str]) -> int:
    """Run a module, a program or a file, as the interpreter's own command line names them."""
    kind, *rest = words
    if kind == "-m":
        sys.modules.pop(rest[0], None)
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.argv = ["-c", *rest[1:]]
        sys.path.insert(0, "")
        main = type(sys)("__main__")
        sys.modules["__main__"] = main
        exec(compile(rest[0], "<string>", "exec"), main.__dict__)
    else:
        sys.argv = words
        sys.path.insert(0, str(Path(kind).resolve().parent))
        runpy.run_path(kind, run_name="__main__")
    return 0


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
