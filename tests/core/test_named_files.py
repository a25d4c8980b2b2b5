"""The names of files that texts contain. See ``docs/reference/kernel.md``, epochs."""

from __future__ import annotations

from cockpit.core.named_files import find_named_files


def test_a_run_of_hundreds_of_characters_is_no_name_and_takes_no_time() -> None:
    # A minified file or encoded data: this took minutes, and no key was answered meanwhile.
    run = "L" * 40_000
    text = f"see ./src/a.py,{run}.js and {'a/' * 2_000} docs/Makefile"

    assert find_named_files(text) == {"src/a.py", "docs/Makefile"}
