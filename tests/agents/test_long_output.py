"""What an agent prints at the end counts, however much it printed before."""

from __future__ import annotations

from cockpit.agents.streams.final_status import read_status
from cockpit.agents.streams.stream_events import TextPiece
from cockpit.agents.streams.stream_formats import LONGEST_TEXT, open_stream


def test_the_last_line_of_a_megabyte_is_its_status() -> None:
    stream = open_stream("text", ())
    pieces = stream.feed("I begin.")
    for _ in range(20_000):
        pieces += stream.feed("building one module of the project, all is well here")
    stream.feed("STATUS: done")
    finish = stream.close(0)
    assert finish is not None
    assert read_status(finish.text)[0] == "done"
    assert finish.text.startswith("I begin.")
    assert len(finish.text) <= LONGEST_TEXT
    streamed = [each for each in pieces if isinstance(each, TextPiece)]
    assert sum(len(each.text) for each in streamed) <= LONGEST_TEXT
