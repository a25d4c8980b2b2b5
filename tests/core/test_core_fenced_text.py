"""What others have written stays inside its fence or code span, and can be read back out of it."""

from __future__ import annotations

from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.core.fenced_text import code_span, fence_text, unfence_text, unspan

SOME = settings(max_examples=examples(25))
TEXTS = st.text(alphabet="`~ ab\n#", max_size=30)
LINES = TEXTS.map(lambda text: text.replace("\n", " ").strip()).filter(bool)


@SOME
@given(TEXTS)
def test_no_text_closes_its_fence(text: str) -> None:
    first, *between, last = fence_text(text, "markdown").split("\n")
    fence = first.removesuffix("markdown")
    assert last == fence == "`" * len(fence) and len(fence) >= 3
    assert not any(line.lstrip(" ").startswith(fence) for line in between)


@SOME
@given(TEXTS, TEXTS)
def test_a_fence_gives_its_text_back_whatever_follows(text: str, after: str) -> None:
    block = fence_text(text, "diff")
    assert unfence_text(block) == unfence_text(f"{block}\n{after}") == text.strip("\n")


@SOME
@given(LINES)
def test_a_code_span_gives_its_line_back(line: str) -> None:
    span = code_span(line)
    assert unspan(span) == line
    ticks = len(span) - len(span.lstrip("`"))
    inside = span[ticks:-ticks]
    assert "`" * ticks not in inside and not inside.startswith("`") and not inside.endswith("`")
