"""The one parser of shell text: every command in it, and what a shell could read otherwise."""

from __future__ import annotations

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.access.parse_shell import parse_shell
from cockpit.access.shell_syntax import Script, SimpleCommand, iter_items, iter_words


def programs(text: str) -> list[str]:
    """The words of every command that the text holds, at any depth."""
    return [
        " ".join(word.text for word in item.words)
        for item in iter_items(parse_shell(text))
        if isinstance(item, SimpleCommand)
    ]


@pytest.mark.parametrize(
    "text",
    [
        *("sudo ls", "su\\\ndo ls", '$"sudo" ls', "a\nsudo ls", ">x sudo ls", "2>&1 sudo >x ls"),
        *("(sudo ls)", "{ sudo ls; }", "echo $(sudo ls)", "echo `a \\`sudo ls\\``"),
        *("cat <(sudo ls)", "a >$(sudo ls)", "x=(1 $(sudo ls))", "echo ${x:-$(sudo ls)}"),
        *("echo $((1 + $(sudo ls)))", "[[ -n $(sudo ls) ]]", "if a; then b; else sudo ls; fi"),
        *("while a; do sudo ls; done", "for x in $(sudo ls); do a; done"),
        *("case x in a) sudo ls;; esac", "f() { sudo ls; }", "cat <<E\n$(sudo ls)\nE"),
        *("cat <<E | sudo ls\nx\nE", "cat <<'E'\n E\n'\nE\nsudo ls"),
        "cat <<'E'\nEX\n'\nE\nsudo ls\n",
    ],
)
def test_every_command_is_listed(text: str) -> None:
    script = parse_shell(text)
    assert script.errors == ()
    assert "sudo ls" in programs(text)


@pytest.mark.parametrize(
    "text",
    [
        *("echo 'sudo ls'", "echo \\$(sudo ls", "cat <<'E'\nsudo ls\nE", "# sudo ls"),
        *("echo 'a' # ; sudo ls", "echo a\\;sudo ls"),
    ],
)
def test_text_is_not_a_command(text: str) -> None:
    assert "sudo ls" not in programs(text)


@pytest.mark.parametrize(
    "text",
    [
        "echo 'open", "echo (a", "a \\ b", "a\x0bb", "a \0 b", 'cat <<E"O"F\nx\nEOF',
        "a <<A <<B\nx\nA\ny\nB", "a=b\\\nc ls", "$(" * 2_000,
    ],
)  # fmt: skip
def test_a_text_that_a_shell_could_read_otherwise_has_an_error(text: str) -> None:
    assert parse_shell(text).errors


def test_words_say_what_is_not_known_before_they_run() -> None:
    (command,) = parse_shell("a $b \"$c\" *.py ~/d {e,f} x[1] $(g) <(h) $((1)) $'i' 'j*' \\*").items
    kinds = [mark.kind for word in command.words for mark in word.marks]
    assert kinds == [
        *("variable", "variable", "glob", "tilde", "braces", "brackets", "command", "process"),
        *("arithmetic", "ansi"),
    ]
    assert [len(word.marks) for word in command.words] == [0, *[1] * 10, 0, 0]
    assert [word.text for word in command.words[-3:]] == ["i", "j*", "*"]


def test_redirections_have_their_operator_and_target() -> None:
    (command,) = parse_shell("a >x b 2>&1 <in >>y &>z >&- <<-E\n\tone\n\tE").items
    assert isinstance(command, SimpleCommand)
    assert [word.text for word in command.words] == ["a", "b"]
    told = [f"{each.operator} {each.target.text}" for each in command.redirections]
    assert told == ["> x", ">& 1", "< in", ">> y", "&> z", ">& -", "<<- E"]
    written = [each.target.text for each in command.redirections if each.writes_file]
    assert written == ["x", "y", "z"]
    body = command.redirections[-1].body
    assert body is not None and body.text == "\tone"
    (command,) = parse_shell("a <<<'w v' >&- b").items
    assert [word.text for word in command.words] == ["a", "b"]
    assert command.redirections[0].operator == "<<<"
    assert [each.target.text for each in command.redirections] == ["w v", "-"]


@pytest.mark.search
@settings(max_examples=examples(50))
@given(st.text(alphabet="ab \n\t'\"\\|&;<>(){}$#`-E=/0[]!*~é\0\r", max_size=40))
def test_nothing_raises_and_every_offset_lies_in_the_text(text: str) -> None:
    script = parse_shell(text)
    assert isinstance(script, Script)
    for item in iter_items(script):
        for word in iter_words((item,)):
            assert 0 <= word.start <= len(text) + 10
