"""Lines that say what failed survive wherever a long output is cut."""

from __future__ import annotations

import pytest

from cockpit.act.adapters.adapter import TAIL, tail
from cockpit.chains.supervisor import _log_tail
from cockpit.core.failure_lines import MOST_LINES, clip_middle, clip_start, pick_failure_lines
from cockpit.learn.capture_errors import describe_failure

FAILURE = "E   AssertionError: assert -1 == 3"
PASSING = "".join(f"tests/test_{number}.py::test_it PASSED\n" for number in range(9_000))


@pytest.mark.parametrize("clip", [clip_middle, clip_start])
@pytest.mark.parametrize("where", [0.01, 0.5, 0.99])
def test_a_failure_survives_anywhere(clip, where):
    at = PASSING.index("\n", int(len(PASSING) * where)) + 1
    text = f"{PASSING[:at]}{FAILURE}\n{PASSING[at:]}"
    clipped = clip(text, 8_000)
    assert FAILURE in clipped.splitlines()
    assert clipped.endswith(text[-3_900:])
    assert len(clipped) < 8_500
    assert clip(f"{FAILURE}\n", 8_000) == f"{FAILURE}\n"


def test_the_first_and_the_last_of_many_failures_are_kept():
    kept = pick_failure_lines("\n".join(f"FAILED test_{number}" for number in range(100_000)))
    assert len(kept) == MOST_LINES
    assert (kept[0], kept[-1]) == ("FAILED test_0", "FAILED test_99999")


@pytest.mark.parametrize("size", [0, 70_000])
def test_a_receipt_keeps_the_failures_of_what_it_cuts_off_and_masks_them(size):
    secret = "ghp_" + "a1B2c3D4e5" * 4
    line = f"\x1b[31mERROR the token {secret} was refused\x1b[0m\r\n"
    kept = tail(f"begin\n{line}{PASSING[:size]}".encode())
    assert "ERROR the token [masked:github-token] was refused" in kept.splitlines()
    assert secret[:12] not in kept
    assert len(kept) < TAIL + 500
    assert kept.endswith(PASSING[:size][-7_000:])


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("sh: 1: protoc: command not found", "command_not_found"),
        ("src/app.c:3: error: x undeclared", "compile_error"),
    ],
)
def test_the_error_of_a_command_is_found_before_thousands_of_lines(line, kind):
    text = f"begin\n{line}\n" + "make[1]: entering directory\n" * 5_000
    entry = describe_failure([], "make all", text, 2, None)
    assert entry is not None
    assert (entry["type"], entry["message"]) == (kind, line)


def test_the_error_of_a_worker_is_told_whatever_it_printed_after_it(tmp_path):
    log = tmp_path / "ch-1-s1.log"
    after = "cleaning up\n" * 200
    log.write_text(f"ModuleNotFoundError: No module named 'calc'\n{after}")
    told = _log_tail(log)
    assert "ModuleNotFoundError: No module named 'calc'" in told
    assert len(told) < 500
