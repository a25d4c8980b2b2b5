"""Themes are complete data, and refused with a reason when they are not."""

import re
from pathlib import Path

import pytest

import themes

VARIABLE = re.compile(r"\$([a-z][\w-]*)")


def test_the_default_comes_first_and_names_are_files() -> None:
    names = [theme.name for theme in themes.THEMES]
    assert names[0] == themes.DEFAULT
    assert {"cockpit-dark", "cockpit-light", "cockpit-contrast", "cockpit-safe"} <= set(names)
    files = {path.stem for path in themes.STYLESHEET.parent.glob("*.toml")}
    assert files == set(names)


def test_every_theme_defines_the_same_variables() -> None:
    defined = [set(theme.variables) for theme in themes.THEMES]
    assert all(each == defined[0] for each in defined)
    assert set(themes.fallbacks(themes.THEMES[0])) <= defined[0]


def test_the_stylesheet_and_widgets_use_only_known_variables() -> None:
    import widgets

    known = {*themes.THEMES[0].to_color_system().generate(), *themes.fallbacks(themes.THEMES[0])}
    places = [themes.STYLESHEET, *Path(widgets.__file__).parent.rglob("*.py")]
    texts = [place.read_text("utf-8") for place in places]
    used = {name for text in texts for name in VARIABLE.findall(text) if not name.endswith("-")}
    assert {"tone-dim", "code-background", "rule"} <= used
    assert used <= known


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("name = 'x'", "dark is missing|colors is missing"),
        ("dark = true\n[colors]\n[variables]", "is missing"),
        ("name = 'x'\ndark = true\n[colors]\nprimary = 'no'\n[variables]", "primary"),
        ("name = [", "broken.toml"),
    ],
)
def test_a_broken_theme_is_refused_with_its_name(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "broken.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=complaint) as caught:
        themes.load(path)
    assert "broken.toml" in str(caught.value)
