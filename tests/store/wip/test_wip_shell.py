"""Taking a command line apart: in order, with where each command writes, and never failing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.access.shell_commands import list_commands


def told(script, cwd: str = "/p") -> list[tuple[str, tuple[str, ...], str, str]]:
    return [
        (" ".join(one.argv), one.writes, one.cwd, one.joined) for one in list_commands(script, cwd)
    ]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("ls -la", [("ls -la", (), "/p", "")]),
        ("cd a && ls; pwd", [("cd a", (), "/p/a", ""), ("ls", (), "/p/a", "&&"), ("pwd", (), "/p/a", ";")]),
        ("a | b || c", [("a", (), "/p", ""), ("b", (), "/p", "|"), ("c", (), "/p", "||")]),
        ("a > x 2>&1", [("a", ("x",), "/p", "")]),
        ("a >>x 2> y &> z", [("a", ("x", "y", "z"), "/p", "")]),
        ("a <in >|out", [("a", ("out",), "/p", "")]),
        ("> x", [("", ("x",), "/p", "")]),
        ("echo 'a > b' \"c | d\" e\\>f", [("echo a > b c | d e>f", (), "/p", "")]),
        ("echo $(cat a | wc -l) b", [("echo $(cat a | wc -l) b", (), "/p", "")]),
        ("A=1 env B=2 timeout -s KILL 5 x", [("x", (), "/p", "")]),
        ("A=1 env B=2 timeout 5 x y", [("x y", (), "/p", "")]),
        ("if a; then b; fi", [("a", (), "/p", ""), ("b", (), "/p", ";"), ("fi", (), "/p", ";")]),
        ("a & b", [("a", (), "/p", ""), ("b", (), "/p", ";")]),
        ("a # b > c\nd", [("a", (), "/p", ""), ("d", (), "/p", ";")]),
        ("a \\\n  b", [("a b", (), "/p", "")]),
        ("bash -lc 'cd s && t'", [("cd s", (), "/p/s", ""), ("t", (), "/p/s", "&&")]),
        ("a | sh -c b", [("a", (), "/p", ""), ("b", (), "/p", "|")]),
        ("sh script.sh -c x", [("sh script.sh -c x", (), "/p", "")]),
        ("cd /tmp && a", [("cd /tmp", (), "/tmp", ""), ("a", (), "/tmp", "&&")]),
        ("", []),
        ("  ;; && ", []),
        ("echo 'open", [("echo open", (), "/p", "")]),
    ],
)  # fmt: skip
def test_a_command_line_is_taken_apart(script, expected) -> None:
    assert told(script) == expected


def test_an_argv_is_one_command_whatever_its_words_hold() -> None:
    assert told(["grep", "a && b", "x > y"]) == [("grep a && b x > y", (), "/p", "")]
    assert told(["bash", "-lc", "a && b"]) == [("a", (), "/p", ""), ("b", (), "/p", "&&")]


def test_here_documents_belong_to_their_command_and_are_not_read_as_commands() -> None:
    script = (
        "cat > a.py <<'EOF' && python a.py\nx = '> b'\n  EOF\nEOF\ncat <<-END\n\tone\n\tEND\nls"
    )
    first, second, third, last = list_commands(script, "/p")
    assert (first.argv, first.writes, first.stdin) == (("cat",), ("a.py",), "x = '> b'\n  EOF")
    assert (second.argv, second.stdin, second.joined) == (("python", "a.py"), "", "&&")
    assert (third.argv, third.stdin) == (("cat",), "\tone")
    assert last.argv == ("ls",)


@given(st.text(alphabet="ab \n\t'\"\\|&;<>(){}$#`-E=/0cd", max_size=60))
def test_whatever_is_written_it_comes_apart(script: str) -> None:
    for one in list_commands(script, "/p"):
        assert one.argv or one.writes or one.reads
        assert one.cwd


@given(st.lists(st.text(max_size=8), max_size=5))
def test_whatever_the_words_it_comes_apart(argv: list[str]) -> None:
    assert len(list_commands(argv)) <= 20
