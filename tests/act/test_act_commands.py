"""Commands: no shell in between, and no wrapping hides what is dangerous."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.act.command_line import CommandRefused, split_command
from cockpit.act.command_risk import judge


@pytest.mark.parametrize(
    "line",
    [
        *("a && b", "a || b", "a; b", "a | b", "a & b", "a\nb", "a > f", "a 2>&1", "a < f"),
        *("echo $HOME", 'echo "$HOME"', "echo $(id)", 'echo "$(id)"', "echo `id`", 'echo "`id`"'),
        *("echo ${X}", "echo $'\\n'", "ls *.py", "ls a?", "cat ~/.ssh/id_rsa", "echo {a,b}"),
        *("echo {1..3}", "(a)", "a \\\n b", "a # rest", "X=1 a", "echo 'open", 'echo "open', "-rf"),
        *("", "   ", "a \0"),
    ],
)
def test_what_only_a_shell_understands_is_refused(line: str) -> None:
    with pytest.raises(CommandRefused):
        split_command(line)


@pytest.mark.parametrize(
    ("line", "argv"),
    [
        ("pytest -q tests/a.py::test_x[1-2]", ["pytest", "-q", "tests/a.py::test_x[1-2]"]),
        ("pytest -k 'a and not b'", ["pytest", "-k", "a and not b"]),
        ("grep -n 'a|b;c && $(d)' f", ["grep", "-n", "a|b;c && $(d)", "f"]),
        ('grep "a\\$b" f', ["grep", "a$b", "f"]),
        ("echo a\\;b \\*", ["echo", "a;b", "*"]),
        ("git show HEAD~3 HEAD^{tree}", ["git", "show", "HEAD~3", "HEAD^{tree}"]),
        ("echo a#b {} ''", ["echo", "a#b", "{}", ""]),
        ("grep 'a$' \"b$\"", ["grep", "a$", "b$"]),
    ],
)
def test_plain_words_pass(line: str, argv: list[str]) -> None:
    assert list(split_command(line)) == argv


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))))
def test_quoted_words_come_through_or_are_refused(words: list[str]) -> None:
    line = shlex.join(["echo", *words])
    try:
        assert list(split_command(line)) == ["echo", *words]
    except CommandRefused as error:
        assert "plain argument" in str(error)  # a word that is an operator by itself, like '&&'


DANGEROUS = (
    *("rm -rf build", "rm --recursive --force x", "git -C sub push", "git reset --hard"),
    *("git clean -fdx", "git -c core.pager=x log", "git branch -D main", "git diff --ext-diff"),
    *("git unknown-alias", "curl https://example.org", "python3.11 -Im pip install x", "npx x"),
    *("ssh host", "find . -delete", "dd if=x of=/dev/null", "chmod -R 777 ."),
    *("cp x .GIT/hooks/pre-commit", "kill 1", "cat .cockpit/state/cockpit.db"),
)
DENIED = (
    *("sudo ls", "su -c ls", "gh pr merge 3", "cockpit proposals approve p-1", "git commit -m x"),
    *("dd if=x of=/dev/sda", "dd of=//dev/../dev/nvme0n1 bs=1M"),
)
WRAPPERS = (
    *("{}", "env -i -u Y {}", "/usr/bin/env -- X=1 {}", "timeout -s KILL 10 {}", "nice -n 5 {}"),
    *("nohup {}", "xargs -n 1 {}", "find . -name x -exec {} +", "uv run --with x {}"),
    *("stdbuf -o L {}", "command {}", "time {}", "env A=1 timeout 5 nice xargs {}"),
)
SCRIPTS = (
    *("@", "true; @", "true && @", "false || @", "true | @", "echo $(@)", "echo `@`", "echo <(@)"),
    *("true\n@", "x=1 @", ">out @", "if true; then @; fi", "(@)", "{ @; }", "! @", "true &\n@"),
    *("eval @", "exec @", "\\\n@", "@ # rest", "; ".join(["true"] * 60 + ["@"])),
)


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_wrapped_or_not_it_is_as_dangerous(wrapper: str) -> None:
    for line in DANGEROUS + DENIED:
        verdict = judge(shlex.split(wrapper.replace("{}", line)))
        assert (verdict.risk, bool(verdict.denied)) == ("high", line in DENIED), line


@pytest.mark.parametrize("script", SCRIPTS)
def test_no_script_hides_it(script: str) -> None:
    for line in ("rm -rf build", "git push", "sudo ls"):
        for shell in (["sh", "-c"], ["bash", "--norc", "-e", "-c"]):
            inner = [*shell, script.replace("@", line)]
            for argv in (inner, ["env", "X=1", *inner], ["sh", "-c", shlex.join(inner)]):
                verdict = judge(argv)
                assert (verdict.risk, bool(verdict.denied)) == ("high", line == "sudo ls"), argv


@pytest.mark.parametrize(
    "line",
    [
        *("pytest -q tests", "python -m pytest -x", "python3 -m unittest", "mypy -p cockpit"),
        *("ruff check .", "cargo test", "go test", "npm test", "git status"),
        *("git --no-pager log --oneline", "git diff HEAD", "rg -n x", "uv run pytest"),
        *("env CI=1 pytest", "timeout 60 pytest", "find . -name x", "ls"),
    ],
)
def test_tests_and_looks_are_low(line: str) -> None:
    verdict = judge(shlex.split(line))
    assert (verdict.risk, verdict.denied) == ("low", None)


@pytest.mark.parametrize(
    "line",
    [
        *("sh", "node -e x"),
        *("frobnicate", "./build.sh", "make", "sh build.sh", "python -c 'print(1)'"),
        *("python tool.py", "sed -i s/a/b/ f", "ruff format .", "git add f", "cat /etc/passwd"),
        *("cat ../secret", "sh -c 'pytest -q'", "mv a b", "rm a", "xargs"),
    ],
)
def test_the_unknown_is_never_low(line: str) -> None:
    assert judge(shlex.split(line)).risk == "medium"


@pytest.mark.parametrize("name", ["PATH", "LD_PRELOAD", "PYTHONPATH", "GIT_DIR", "GIT_SSH_COMMAND"])
def test_variables_that_change_what_runs_are_high(name: str) -> None:
    assert judge(["env", f"{name}=x", "pytest"]).risk == "high"


@given(st.lists(st.text(max_size=20), min_size=1, max_size=6))
def test_every_argv_has_a_verdict(argv: list[str]) -> None:
    assert judge(argv).risk in {"low", "medium", "high"}


@given(st.text(alphabet="$(`'\"\\;|&<>) \nrmab{}-", max_size=60))
def test_every_script_has_a_verdict_that_is_never_low(text: str) -> None:
    assert judge(["sh", "-c", text]).risk != "low"


@pytest.mark.parametrize(
    "script",
    [
        "true $(" * 50_000,
        "$(" * 900,
        "true; " * 1_500 + "sudo ls",
        "$(sh -c '$(a; b)')" * 39,
        "true " * 3_000 + "; sudo ls",
        " ".join(f"$(sh -c 'echo {i} $(echo $(echo))')" for i in range(13)) * 3,
    ],
)
def test_a_script_too_long_to_be_judged_is_denied(script: str) -> None:
    assert judge(["sh", "-c", script]).denied


def test_nesting_hides_nothing_and_has_an_end() -> None:
    nested = ["rm", "-rf", "x"]
    for _ in range(4):
        nested = ["sh", "-c", shlex.join(nested)]
    assert "it removes files" in judge(nested).reasons
    assert judge(["env"] * 60 + ["ls"]).denied
