"""Names of a repository's files that look like others: they are refused before they are judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from cockpit.core.text import is_plain, mixes_scripts
from cockpit.loop.intake import roles, task_types
from cockpit.loop.intake.roles import load_roles
from cockpit.loop.intake.task_types import load_task_types

ODD = {
    "a space after it": "{} ",
    "a space before it": " {}",
    "a line's end": "{}\\n",
    "a tab": "{}\\t",
    "a no-break space": "{}\\u00a0",
    "a zero-width space": "{}\\u200b",
    "a zero-width joiner inside": "r\\u200d{}",
    "a mark for the direction": "\\u202e{}",
    "a byte order mark": "\\ufeff{}",
    "a tag letter": "{}\\U000e0041",
    "a soft hyphen": "{}\\u00ad",
    "full-width letters": "\\uff52{}",
    "a ligature": "\\ufb01{}",
    "a line separator": "{}\\u2028",
}
MIXED = {"a Cyrillic letter": "r\\u0435view", "a Greek letter": "\\u03bfpen"}
TYPE = '+++\nname = "audit"\ndod = ["x"]\n{field} = {value}\n+++\nBody\n'
FIELDS = {
    "aliases": ('["{}"]', "review"),
    "command": ('"{}"', "/audit"),
    "policy": ('"{}"', "ask"),
    "deterministic": ('["{}"]', "file:README.md"),
}


def problems(project: Path, folder: str, text: str) -> tuple[str, ...]:
    files = project / ".cockpit" / folder
    files.mkdir(parents=True, exist_ok=True)
    (files / "odd.md").write_text(text, encoding="utf-8")
    load = load_roles if folder == "roles" else load_task_types
    return load(project, None).problems


def of_type(project: Path, field: str, value: str) -> tuple[str, ...]:
    return problems(project, "task-types", TYPE.format(field=field, value=value))


@pytest.mark.parametrize("how", ODD)
@pytest.mark.parametrize("field", FIELDS)
def test_an_odd_name_of_a_task_type_is_refused(tmp_path: Path, field: str, how: str) -> None:
    shape, plain = FIELDS[field]
    if field in ("aliases", "policy", "deterministic"):
        assert of_type(tmp_path, field, shape.format(plain + "er" * (field == "aliases"))) == ()
    (problem,) = of_type(tmp_path, field, shape.format(ODD[how].format(plain)))
    assert f"field `{field}`" in problem and "Write it plainly" in problem


@pytest.mark.parametrize("how", MIXED)
def test_a_word_of_two_alphabets_is_no_alias(tmp_path: Path, how: str) -> None:
    (problem,) = of_type(tmp_path, "aliases", f'["{MIXED[how]}"]')
    assert "letters that look like others" in problem
    for language in ("prüfen", "проверка", "δοκιμή", "レビュー"):
        assert of_type(tmp_path, "aliases", f'["{language}"]') == ()


@pytest.mark.parametrize("how", ODD)
def test_an_odd_name_of_a_role_or_of_its_tools_is_refused(tmp_path: Path, how: str) -> None:
    odd = ODD[how].format("implementer")
    (problem,) = problems(tmp_path, "roles", f'+++\nname = "{odd}"\n+++\n')
    assert "Write it plainly" in problem
    odd = ODD[how].format("finish")
    role = f'+++\nname = "implementer"\ntools = ["finish", "{odd}"]\n+++\n'
    (problem,) = problems(tmp_path, "roles", role)
    assert "Write it plainly" in problem


@pytest.mark.parametrize("how", ODD)
def test_an_odd_name_of_a_task_type_itself_is_refused(tmp_path: Path, how: str) -> None:
    odd = ODD[how].format("review_pr")
    assert problems(tmp_path, "task-types", f'+++\nname = "{odd}"\ndod = ["x"]\n+++\n') != ()


def test_the_attack_works_without_the_defence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second alias that reads ``review`` is then another word than the one that is there."""
    monkeypatch.setattr(task_types, "is_plain", lambda text: True)
    monkeypatch.setattr(roles, "is_plain", lambda text: True)
    assert of_type(tmp_path, "aliases", '["review\\u200b"]') == ()


def test_what_is_plain() -> None:
    for text in (
        "review",
        "prüfen",
        "make test",
        "a\u0301".encode().decode() and "á",
        "/review-pr",
    ):
        assert is_plain(text) and not mixes_scripts(text), text
    assert not is_plain("e\u0301")  # two letters that NFKC makes one
