"""Names of a repository's files that look like others: they are refused before they are judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from cockpit.core.text import is_plain, mixes_scripts
from cockpit.loop.intake.roles import load_roles
from cockpit.loop.intake.task_types import load_task_types

ODD = (
    *("{} ", "{}\\t", "{}\\u00a0", "r\\u200d{}", "\\u202e{}", "\\ufeff{}", "{}\\U000e0041"),
    *("\\uff52{}", "\\ufb01{}", "{}\\u2028"),
)
"""Blanks, invisible signs and letters that look like others, as TOML spells them, around a name."""
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


@pytest.mark.parametrize("field", FIELDS)
def test_an_odd_name_of_a_task_type_is_refused(tmp_path: Path, field: str) -> None:
    shape, plain = FIELDS[field]
    if field != "command":
        assert of_type(tmp_path, field, shape.format(plain + "er" * (field == "aliases"))) == ()
    for odd in ODD:
        (problem,) = of_type(tmp_path, field, shape.format(odd.format(plain)))
        assert f"field `{field}`" in problem and "Write it plainly" in problem, odd


def test_a_word_of_two_alphabets_is_no_alias(tmp_path: Path) -> None:
    for mixed in ("r\\u0435view", "\\u03bfpen"):  # a Cyrillic letter, a Greek one
        (problem,) = of_type(tmp_path, "aliases", f'["{mixed}"]')
        assert "letters that look like others" in problem
    for language in ("prüfen", "проверка", "δοκιμή", "レビュー"):
        assert of_type(tmp_path, "aliases", f'["{language}"]') == ()


def test_an_odd_name_of_a_role_or_of_its_tools_is_refused(tmp_path: Path) -> None:
    for odd in ODD:
        name, tool = odd.format("implementer"), odd.format("finish")
        for role in (f'name = "{name}"', f'name = "implementer"\ntools = ["finish", "{tool}"]'):
            (problem,) = problems(tmp_path, "roles", f"+++\n{role}\n+++\n")
            assert "Write it plainly" in problem, odd


def test_what_is_plain() -> None:
    for text in ("review", "prüfen", "make test", "/review-pr"):
        assert is_plain(text) and not mixes_scripts(text), text
    assert not is_plain("e\u0301")  # two letters that NFKC makes one
