"""``cockpit --connect`` end to end: a real server, a real terminal on each side, and lines of every kind."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from api.web.remote_world import (
    Client,
    client,
    modes,
    openings,
    revoke_token,
    screens,
    token,
    wait_for_proposal,
    waiting,
)
from api.web.slow_line import SlowLine, slow_line
from api.web.web_world import PATIENCE_S, Web, web
from faults.terminal_trials import MARK, list_processes

from cockpit.access.token_scopes import APPROVE, READ, SCREEN_OPEN

pytestmark = pytest.mark.slow


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Web]:
    with web(tmp_path / "web") as started:
        yield started


def port(served: Web) -> int:
    return int(served.address.rpartition(":")[2])


@contextlib.contextmanager
def over(
    served: Web, *, delay_s: float = 0.0, jitter_s: float = 0.0
) -> Iterator[tuple[Client, SlowLine]]:
    """A client over a line that can be slowed; the screen is there."""
    _, secret = token(served)
    with (
        slow_line(port(served)) as line,
        client(served, f"http://127.0.0.1:{line.port}", secret=secret) as shown,
    ):
        shown.until("ype a task:")
        line.delay_s, line.jitter_s = delay_s, jitter_s
        yield shown, line


def propose(served: Web, shown: Client) -> None:
    """Begin a task; its proposal waits, and the terminal may not have it yet."""
    shown.press(b"write the notes\r")
    wait_for_proposal(served, shown)


def is_approved(served: Web) -> bool:
    return (served.root / "notes.md").exists()


def approve(served: Web, shown: Client, pause_s: float = 1.5) -> None:
    """Press Enter until it counts: it does once the proposal has been on the terminal for a while."""
    deadline = time.monotonic() + 2 * PATIENCE_S
    while not is_approved(served):
        assert time.monotonic() < deadline, shown.wrote[-1500:]
        shown.watch(pause_s)
        shown.press(b"\r")
        until = time.monotonic() + pause_s
        while not is_approved(served) and time.monotonic() < until:
            shown.watch(0.1)


def test_a_task_is_proposed_discussed_approved_and_resized(served: Web) -> None:
    _, secret = token(served)
    with client(served, served.address, secret=secret) as shown:
        before = modes(shown)
        shown.until("ype a task:")
        assert modes(shown) != before
        shown.press(b"write the notes\r")
        at = shown.until("# First")
        deadline = time.monotonic() + PATIENCE_S
        while b"ype your reply" not in shown.wrote[at:]:
            assert time.monotonic() < deadline
            shown.watch(1.0)
            shown.press(b"\x1b")
            shown.watch(1.0)
        shown.press(b"shorter please")
        shown.until("please", after=at)
        shown.press(b"\r")
        at = shown.until("# Short", after=at)
        shown.resize(30, 90)
        at = shown.until("# Short", after=at)
        approve(served, shown)
        assert (served.root / "notes.md").read_text() == "# Short\n"
        shown.until("That is all", after=at)
        shown.press(b"\x04")
        assert shown.wait() == 0
        assert modes(shown) == before
        assert shown.wrote.rindex(b"\x1b[?1049l") > shown.wrote.rindex(b"\x1b[?1049h")
        assert b"_cockpit" not in shown.wrote


def test_enter_before_the_proposal_is_on_the_glass_approves_nothing(served: Web) -> None:
    """Over two seconds each way the screen's own clock has armed it long before the user sees it."""
    with over(served, delay_s=2.0) as (shown, _):
        propose(served, shown)
        seen = len(shown.wrote)
        shown.watch(1.0)
        assert b"# First" not in shown.wrote[seen:]
        shown.press(b"\r")  # it arrives when the proposal has been drawn for seconds, over there
        shown.until("# First", after=seen)
        shown.press(b"\r")  # at once, as one types on: it was on the drawn for no half second
        shown.echo("zqxz")
        assert waiting(served) and not is_approved(served)
        approve(served, shown, pause_s=6.0)


def test_enter_as_soon_as_the_proposal_appears_approves_nothing(served: Web) -> None:
    """The user has seen it for no half second, although the server has shown it for longer."""
    with over(served, delay_s=1.0) as (shown, _):
        seen = len(shown.wrote)
        propose(served, shown)
        shown.until("# First", after=seen)
        shown.watch(0.35)
        shown.press(b"\r")
        shown.echo("zqxz")
        assert waiting(served) and not is_approved(served)
        approve(served, shown, pause_s=4.0)


def test_enter_over_a_line_that_wavers_approves_nothing_early(served: Web) -> None:
    with over(served, delay_s=0.2, jitter_s=1.5) as (shown, _):
        propose(served, shown)
        seen = len(shown.wrote)
        while b"# First" not in shown.wrote[seen:]:
            shown.press(b"\r")
            shown.watch(0.2)
        shown.press(b"\r")
        shown.echo("zqxz")
        assert waiting(served) and not is_approved(served)
        approve(served, shown, pause_s=5.0)


def test_enter_shortly_after_another_key_approves_nothing_however_late_it_comes(
    served: Web,
) -> None:
    with over(served) as (shown, line):
        propose(served, shown)
        shown.until("# First")
        shown.echo("zqxz")
        shown.watch(2.0)
        shown.press(b"\x1b[C")  # an arrow that does nothing
        shown.watch(0.1)
        line.stall()
        shown.press(b"\r")
        shown.watch(1.5)
        line.resume()
        shown.echo("zqxz")
        assert waiting(served) and not is_approved(served)
        approve(served, shown)


def test_enter_on_half_a_frame_approves_nothing(served: Web) -> None:
    with over(served) as (shown, line):
        shown.press(b"write the notes")
        shown.until("notes")
        shown.watch(1.0)
        line.stall(after=600)
        shown.press(b"\r")
        wait_for_proposal(served, shown)
        shown.watch(1.5)
        assert line.is_stalled
        shown.press(b"\r")
        shown.watch(1.0)
        shown.press(b"\r")
        line.resume()
        shown.until("# First")
        shown.echo("zqxz")
        assert waiting(served) and not is_approved(served)
        approve(served, shown)


def test_enter_while_the_line_stalls_approves_nothing_when_it_comes_back(served: Web) -> None:
    with over(served, delay_s=2.0) as (shown, line):
        seen = len(shown.wrote)
        propose(served, shown)
        line.stall()  # with the proposal on it
        shown.watch(2.5)
        assert b"# First" not in shown.wrote[seen:]
        shown.press(b"\r")
        shown.watch(1.0)
        line.resume()
        shown.until("# First", after=seen)
        shown.echo("zqxz")
        assert waiting(served) and not is_approved(served)
        approve(served, shown, pause_s=6.0)


def test_a_lost_line_comes_back_with_the_same_screen_and_draft(served: Web) -> None:
    with over(served) as (shown, line):
        propose(served, shown)
        at = shown.until("# First")
        shown.press(b"half a thought")
        shown.until("thought", after=at)
        running = screens(served)
        at = len(shown.wrote)
        line.refuse()
        at = shown.until("connection lost", after=at)
        shown.press(b"\x7f" * 14 + b"\r")  # goes nowhere
        shown.watch(1.0)
        line.refuse(refuses=False)
        shown.until("half a thought", after=at)
        shown.until("# First", after=at)
        assert screens(served) == running
        assert openings(served) == [("laptop", False), ("laptop", True)]
        assert waiting(served) and not is_approved(served)
        at = len(shown.wrote)
        shown.press(b"\x7f" * 14)
        shown.until("ype a reply", after=at)
        approve(served, shown)


def test_a_proposal_that_came_while_the_line_was_lost_is_armed_once_it_was_seen(
    served: Web,
) -> None:
    with over(served) as (shown, line):
        shown.press(b"write the notes\r")
        shown.until("I look")
        line.refuse()
        wait_for_proposal(served, shown)
        shown.watch(2.0)
        line.refuse(refuses=False)
        at = shown.until("connection lost")
        while b"# First" not in shown.wrote[at:]:
            shown.press(b"\r")
            shown.watch(0.05)
        shown.press(b"\r")
        shown.echo("zqxz")
        assert waiting(served) and not is_approved(served)
        approve(served, shown)


def test_a_terminal_that_answers_nothing_is_taken_by_its_word(served: Web) -> None:
    _, secret = token(served)
    with client(served, served.address, secret=secret, answers=False) as shown:
        shown.until("ype a task:")
        propose(served, shown)
        shown.until("# First")
        approve(served, shown)


def test_two_clients_see_one_queue_and_one_of_them_decides(served: Web) -> None:
    _, secret = token(served)
    with (
        client(served, served.address, secret=secret) as first,
        client(served, served.address, secret=secret) as second,
    ):
        first.until("ype a task:")
        second.until("ype a task:")
        propose(served, first)
        first.until("# First")
        second.until("waiting", "waits")
        assert len(screens(served)) == 2
        at = len(second.wrote)
        approve(served, first)
        second.watch(1.0)
        second.press(b"\r\r")
        second.watch(0.5)
        assert second.read(0.5) or at
        assert (served.root / "notes.md").read_text() == "# First\n"
        second.press(b"\x04")
        assert second.wait() == 0


@pytest.mark.parametrize("way", ["TERM", "HUP", "closed", "key"])
def test_a_client_that_ends_leaves_nothing(served: Web, way: str) -> None:
    _, secret = token(served)
    with client(served, served.address, secret=secret) as shown:
        before = modes(shown)
        shown.until("ype a task:")
        mark = shown.env[MARK]
        if way == "closed":
            os.close(shown.main)
            shown.main = -1
        elif way == "key":
            shown.press(b"\x1d")
        else:
            for pid in list_processes(mark):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.Signals[f"SIG{way}"])
        deadline = time.monotonic() + PATIENCE_S
        while list_processes(mark):
            assert time.monotonic() < deadline, list_processes(mark)
            if shown.main >= 0:
                shown.read(0.05)
            else:
                time.sleep(0.05)
        if shown.main >= 0:
            shown.watch(0.2)
            assert modes(shown) == before
            assert shown.wrote.rindex(b"\x1b[?1049l") > shown.wrote.rindex(b"\x1b[?1049h")


def test_a_killed_server_is_said_and_the_terminal_comes_back(served: Web) -> None:
    _, secret = token(served)
    with client(served, served.address, secret=secret) as shown:
        before = modes(shown)
        at = shown.until("ype a task:")
        for pid, line in list_processes(served.mark).items():
            if " web " in f"{line} ":
                os.kill(pid, signal.SIGKILL)
        shown.until("connection lost", after=at)
        shown.press(b"\x03")
        assert shown.wait() == 130
        assert modes(shown) == before
    for pid in list_processes(served.mark):
        os.kill(pid, signal.SIGKILL)


def refused(served: Web, secret: str, *words: str) -> tuple[int, str]:
    """The exit code and the words of a client that gets no screen."""
    with client(served, served.address, *words, secret=secret) as shown:
        before = modes(shown)
        code = shown.wait()
        assert modes(shown) == before
        assert b"\x1b[?1049h" not in shown.wrote
        return code, " ".join(shown.wrote.decode().split())


def test_tokens_that_open_no_screen_are_refused_in_words(served: Web) -> None:
    revoked, of_revoked = token(served)
    revoke_token(served, revoked.cap_id)
    _, expired = token(served, expires_s=0.001)
    _, reads = token(served, READ, APPROVE)
    _, agents = token(served, SCREEN_OPEN, namespace="agent/s-1")
    for secret, words in (
        ("ckp_wrong", "does not belong to this project"),
        (expired, "is expired since"),
        (of_revoked, "is revoked since"),
        (reads, "needs the scope screen.open"),
        (agents, "an agent decides nothing"),
    ):
        code, told = refused(served, secret)
        assert code == 3, told
        assert words in told
        assert secret not in told
    code, told = refused(served, "")
    assert code == 2 and "screen.open" in told
    assert screens(served) == []


def test_a_token_that_is_revoked_ends_its_screen(served: Web) -> None:
    held, secret = token(served)
    with client(served, served.address, secret=secret) as shown:
        shown.until("ype a task:")
        revoke_token(served, held.cap_id)
        assert shown.wait() == 3
        assert "is revoked since" in " ".join(shown.wrote.decode("utf-8", "replace").split())
    deadline = time.monotonic() + PATIENCE_S
    while screens(served):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_unix_socket_serves_terminals_alone(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with web(tmp_path / "web", (), "--socket", str(path)) as started:
        _, secret = token(started)
        with client(started, f"unix:{path}", secret=secret) as shown:
            shown.until("ype a task:")
            shown.press(b"\x04")
            assert shown.wait() == 0
    assert not path.exists()
