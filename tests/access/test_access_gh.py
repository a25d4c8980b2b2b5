"""``gh`` commands: a closed table, one repository, no shell, and what is shown is what runs."""

from __future__ import annotations

import shlex

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.access.gh_command import GhCommand, GhRefused, parse_gh
from cockpit.access.gh_table import COMMANDS

REPO = "acme/api"


def parse(command: str | list[str]) -> GhCommand:
    return parse_gh(command, project_repo=REPO)


@pytest.mark.parametrize(
    ("line", "argv"),
    [
        ("gh pr view 24 --json title,body", ["pr", "view", "24", "--json", "title,body"]),
        ("pr diff #24", ["pr", "diff", "24"]),
        ("gh pr view https://github.com/acme/api/pull/7/files", ["pr", "view", "7"]),
        ("gh pr view -R ACME/Api 3", ["pr", "view", "3", "--repo", "ACME/Api"]),
        ("gh issue view 3 -c", ["issue", "view", "3", "--comments"]),
        ("gh pr list --state=open -L 5", ["pr", "list", "--state", "open", "--limit", "5"]),
        ("gh release view v1.2.0", ["release", "view", "v1.2.0"]),
        ("gh search code foo", ["search", "code", "foo", "--repo", "acme/api"]),
        ("gh api repos/{owner}/{repo}/pulls/3/files", ["api", "repos/{owner}/{repo}/pulls/3/files"]),
        ("gh api repos/acme/api/pulls/3 --jq .title", ["api", "repos/acme/api/pulls/3", "--jq", ".title"]),
    ],
)  # fmt: skip
def test_reads_are_rebuilt(line: str, argv: list[str]) -> None:
    command = parse(line)
    assert command.access == "read"
    assert command.argv == ("gh", *argv)
    assert command.execution_argv() == (("gh", *argv), None)


@pytest.mark.parametrize(
    ("line", "fields", "body"),
    [
        ("gh pr review 24 --approve --body LGTM", [("approve", "yes")], "LGTM"),
        ("gh pr review 24 -r -b '- one\n- two'", [("request-changes", "yes")], "- one\n- two"),
        ("gh pr review 24 --comment --body='; rm -rf /'", [("comment", "yes")], "; rm -rf /"),
        ("gh pr review 24 --approve", [("approve", "yes")], None),
        ("gh pr comment 24 -b 'see `x` and $(y)'", [], "see `x` and $(y)"),
        (
            "gh issue create -t 'Fix `load`' -b text -l bug -l 'good first issue'",
            [("title", "Fix `load`"), ("label", "bug"), ("label", "good first issue")],
            "text",
        ),
        ("gh pr merge 24 --squash -d", [("squash", "yes"), ("delete-branch", "yes")], None),
        ("gh issue close 3 --reason completed", [("reason", "completed")], None),
        ("gh pr close 3", [], None),
    ],
)
def test_writes_show_fields_and_body(line, fields, body):
    command = parse(line)
    assert command.access == "write"
    assert list(command.fields) == fields
    assert command.body == body
    argv, stdin = command.execution_argv()
    if body is None:
        assert stdin is None and argv == command.argv
    else:
        assert argv[-2:] == ("--body-file", "-") and body not in argv
        assert stdin == body.encode()


@pytest.mark.parametrize(
    "line",
    [
        *("gh pr view 24 25", "gh pr view 'open", "gh pr review --approve", "gh pr comment 24"),
        *("gh pr view https://github.com/acme/api/issues/24", "gh pr edit 24"),
        *("gh pr review 24 --approve --approve", "gh pr review 24 --approve --body-file -"),
        *("", "gh pr view 24; rm -rf /", "gh pr view $(id)", "gh pr view 24\nrm -rf x"),
        *("gh pr view main", "gh pr view ٢٤", "gh pr view 0", "gh pr view -- 24"),
        *("gh pr view 24 -R evil.com/acme/api", "gh pr view https://evil.com/acme/api/pull/24"),
        *("gh pr list --search 'is:open repo:someone/else'", "gh pr review 24"),
        *("gh pr review 24 --approve --comment -b x", "gh pr review 24 --request-changes"),
        *("gh pr review 24 -ab x", "gh pr review 24 --approve --body a --body b"),
        *("gh pr create --title x", "gh pr create --title=-x --body y"),
        "gh pr create --title x --body y --template /etc/passwd",
        *("gh pr merge 24 --merge --squash", "gh pr merge 24 --squash --admin", "gh auth token"),
        *("gh alias set x '!sh'", "gh repo delete acme/api", "gh release view '../x'"),
        *("gh search code 'x repo:someone/else'", "gh api graphql -f query=x"),
        "gh api -X POST repos/acme/api/issues",
        "gh api repos/acme/api/issues -F title=@/etc/passwd",
        "gh api repos/acme/api -H X-HTTP-Method-Override:DELETE",
        *("gh api repos/acme/api --hostname evil.com", "gh api repos/someone/else/pulls"),
        *("gh api repos/acme/api/../../someone/else", "gh api repos/acme/api/%2e%2e/x"),
        "gh api user",
    ],
)
def test_everything_else_is_refused_with_words(line: str) -> None:
    with pytest.raises(GhRefused) as refused:
        parse(line)
    assert len(str(refused.value)) > 15


def test_without_a_known_repository_none_can_be_named() -> None:
    assert parse_gh("gh pr view 24").argv == ("gh", "pr", "view", "24")
    for line in (
        "gh pr view 24 --repo acme/api",
        "gh pr view https://github.com/acme/api/pull/24",
        "gh search code x",
        "gh repo view acme/api",
        "gh api repos/acme/api/pulls",
    ):
        with pytest.raises(GhRefused):
            parse_gh(line)


def test_a_list_is_never_split_again() -> None:
    with pytest.raises(GhRefused):
        parse(["pr", "view", "24 --web"])
    with pytest.raises(GhRefused, match="NUL"):
        parse(["pr", "view", "24\0"])
    assert parse(["pr", "comment", "24", "--body", "a b\nc"]).body == "a b\nc"


def test_bodies_are_bounded_and_sound() -> None:
    with pytest.raises(GhRefused, match="65536"):
        parse(["pr", "comment", "24", "--body", "x" * 70_000])
    with pytest.raises(GhRefused, match="Unicode"):
        parse(["pr", "comment", "24", "--body", "a\ud800"])


def test_a_marker_can_be_added_to_a_body() -> None:
    command = parse("gh pr review 24 --approve --body LGTM").with_body("LGTM\n\n<!-- key -->")
    assert command.execution_argv()[1] == b"LGTM\n\n<!-- key -->"
    assert command.argv.count("--body") == 1
    bare = parse("gh pr review 24 --approve").with_body("<!-- key -->")
    assert bare.execution_argv() == (
        ("gh", "pr", "review", "24", "--approve", "--body-file", "-"),
        b"<!-- key -->",
    )


TABLE_WORDS = sorted({word for area_verb in COMMANDS for word in area_verb})
OTHER_WORDS = "24 --body -b --repo acme/api --approve --json x/y -- -X POST ; $(x) --title --method"
word = st.sampled_from([*TABLE_WORDS, *OTHER_WORDS.split()]) | st.text(max_size=8)


@pytest.mark.search
@settings(max_examples=examples(50))
@given(st.lists(word, max_size=8))
def test_whatever_is_understood_is_understood_again_the_same(words: list[str]) -> None:
    try:
        command = parse(words)
    except GhRefused:
        return
    assert parse(list(command.argv)) == command
    assert parse(shlex.join(command.argv)) == command
    assert (command.area, command.verb) in COMMANDS
