"""Nothing hostile reaches a terminal, whatever the model, the repository or the store holds."""

from __future__ import annotations

import io
import json
import re

import pytest
from cli_world import Project
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.commands.terminal import SafeStream, format_table, json_text

pytestmark = pytest.mark.slow

ATTACKS = {
    "osc52": "\x1b]52;c;aGVsbG8=\x07",
    "osc8": "\x1b]8;;https://evil.example\x1b\\link\x1b]8;;\x1b\\",
    "title": "\x1b]0;owned\x07",
    "csi": "\x1b[2J\x1b[31m",
    "c1": "\x9b31m\x9d52;c;aGk=\x9c",
    "dcs": "\x1bP$q\x1b\\",
    "apc": "\x1b_payload\x1b\\",
    "bidi": "\u202egnp.exe\u2066",
    "cr": "safe\rrm -rf",
    "zero width": "a\u200bb\u2060c\ufeff",
    "tags": "\U000e0041\U000e0042",
}
HOSTILE = "".join(ATTACKS.values())
DANGEROUS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")

SCENARIO = """
[[turn]]
text = {hostile}
[[turn.call]]
name = "request_context"
[turn.call.arguments]
purpose = {hostile}
question = {hostile}
scope = ["file:shapes.py", {file}]
escalation = {hostile}
[[turn]]
when = {{ wave_from = 2 }}
[[turn.call]]
name = "finish"
arguments = {{ status = "done", summary = {hostile} }}
"""


@given(st.text())
def test_json_reads_back_unchanged_and_acts_on_nothing(text: str) -> None:
    written = json_text({"a": [text]})
    assert json.loads(written) == {"a": [text]}
    assert not DANGEROUS.search(written)
    assert "\n" not in json_text(text)


@pytest.mark.search
@settings(max_examples=examples(60))
@given(st.lists(st.sampled_from([*ATTACKS.values(), "words ", "\n"]), max_size=12), st.data())
def test_a_stream_cut_anywhere_passes_nothing_on(parts: list[str], data: st.DataObject) -> None:
    text = "".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    out = io.StringIO()
    telling = SafeStream(out)
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        telling.write(text[start:end])
    telling.end()
    assert not DANGEROUS.search(out.getvalue())


def test_a_cell_stays_on_its_line() -> None:
    text = format_table(("A", "B"), [("one\ntwo", "three\r\nfour"), (ATTACKS["osc8"], "x")])
    assert text.splitlines() == ["A        B", "one two  three four", "link     x"]


def test_no_command_passes_anything_on_and_json_keeps_it(project: Project) -> None:
    project.git("commit", "--quiet", "--allow-empty", "-m", f"Title {HOSTILE}")
    hostile = json.dumps(HOSTILE)
    toml = re.sub(r"\\u(db40)\\u(dc4[12])", lambda m: f"\\U000E00{m[2][2:]}", hostile)
    named = json.dumps(f"file:{ATTACKS['csi']}.py")
    model = project.script(SCENARIO.format(hostile=toml, file=named))
    words = ("run", f"review main..feature {HOSTILE[:9]}", "--model", model, "--approve", "all")
    outputs = [project.run(*words)]
    (proposal, *_) = project.json("proposals", "--all", "--json")
    identity = proposal["proposal_id"]
    for line in (
        *(
            "proposals --all",
            f"proposals {identity}",
            f"proposals {identity} --json",
        ),
        *("sessions", "sessions last", "sessions last --json", "journal --json"),
        *("journal", "journal --all --json", "packet 1", "debug packet explain --json"),
    ):
        outputs.append(project.run(*line.split()))
    outputs.append(project.run("proposals", HOSTILE, expect=2))
    for done in outputs:
        assert not DANGEROUS.search(done.stdout + done.stderr), done.args
    assert "characters that cannot be shown" in outputs[2].stdout
    document = project.json("sessions", "last", "--json")
    assert document["result"]["summary"] == HOSTILE
