"""``cockpit run``: the three formats, the exit codes, and stopping."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest
from cli_world import Project
from sandbox_here import WARNING

pytestmark = pytest.mark.slow

REVIEW = "review main..feature"


def test_the_stream_is_the_journal(project: Project) -> None:
    rows = project.rows("run", REVIEW, "--model", project.script(), "--approve", "all")
    exported = [
        json.loads(line) for line in project.run("journal", "--all", "--json").stdout.splitlines()
    ]
    mine = [row for row in exported if row["session_id"]]
    told = [row for row in rows if row["action"] != "message.delta"]
    assert told == mine
    assert [row["seq"] for row in rows] == sorted(row["seq"] for row in rows)
    project.run("debug", "journal")


def test_the_story_is_told_on_stdout_and_nothing_else(project: Project) -> None:
    done = project.run("run", REVIEW, "--model", project.script(), "--approve", "all")
    assert done.stderr == WARNING
    assert done.stdout.startswith("review_pr · ")
    said = ["I need two files before I judge this.", "── wave 3", "✔ done: Notes written."]
    assert [done.stdout.count(words) for words in said] == [1, 1, 1]
    assert project.run("sessions", "last").stdout == done.stdout


def test_a_review_is_printed_and_written_besides(project: Project) -> None:
    words = ["review", "main..feature", "--model", "offline"]
    done = project.run(*words, "--approve", "all")
    review = (project.root / ".cockpit" / "reviews" / "main..feature.md").read_text("utf-8")
    assert done.stdout == review
    assert "Verdict" in review
    assert "── wave 1" in done.stderr
    assert "also in .cockpit/reviews/main..feature.md" in done.stderr
    assert project.git("status", "--porcelain") == ""
    result = project.json("sessions", "last", "--json")["result"]
    assert (result["status"], result["review"]) == ("done", review)
    assert (result["review_state"], result["review_path"]) == (
        "written",
        ".cockpit/reviews/main..feature.md",
    )


def test_a_review_without_a_target_is_of_this_branch_or_the_last_commit(project: Project) -> None:
    for branch, reviewed in (("feature", "main...HEAD"), ("main", "HEAD~1..HEAD")):
        project.git("checkout", "--quiet", branch)
        if branch == "main":
            (project.root / "more.py").write_text("X = 1\n")
            project.git("add", "more.py")
            project.git("commit", "--quiet", "--message", "More")
        project.run("review", "--model", "offline", "--approve", "all")
        assert reviewed in project.run("sessions").stdout.splitlines()[1]


NOTES_FIRST = """
[[turn]]
[[turn.call]]
name = "write_file"
arguments = { path = "notes.md", content = "# Notes\\n" }
[[turn.call]]
%s
"""


@pytest.mark.parametrize(
    "action",
    [
        'name = "github"\narguments = { command = "gh issue comment 7 --body Done" }',
        'name = "run"\narguments = { argv = ["rm", "-r", "src"], reason = "start again" }',
    ],
    ids=["github", "high risk"],
)
def test_all_leaves_github_and_high_risk_to_the_user(project: Project, action: str) -> None:
    model = project.script(NOTES_FIRST % action)
    words = ("run", "tidy up", "--model", model, "--approve", "all", "--deadline", "1")
    done = project.run(*words, expect=4)
    assert "expired without a decision" in done.stdout
    assert "cockpit run --continue s-" in done.stderr
    assert (project.root / "notes.md").exists()
    decided = [
        (proposal["status"], proposal["decided_by"])
        for proposal in project.json("sessions", "last", "--json")["proposals"]
    ]
    assert decided == [("approved", "policy:all"), ("expired", "deadline")]


def test_a_command_that_reads_is_approved_as_a_context_request(project: Project) -> None:
    model = project.script("""
[[turn]]
[[turn.call]]
name = "run"
arguments = { argv = ["sed", "-n", "1,2p", "shapes.py"], reason = "see area" }
[[turn]]
when = { called = ["run"] }
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "Seen." }
""")
    words = ["run", "fix the areas", "--model", model, "--approve", "reads"]
    document = project.json(*words, "--output-format", "json")
    (proposal,) = document["proposals"]
    assert (proposal["kind"], proposal["decided_by"]) == ("context", "policy:reads")
    assert document["actions"] == []
    (request,) = (
        json.loads(line)["detail"]
        for line in project.run("journal", "--all", "--json").stdout.splitlines()
        if '"context.requested"' in line and '"frame"' not in line
    )
    assert [item["item"] for item in request["items"]] == ["file:shapes.py:1-2"]


def test_a_signal_stops_within_the_wave_and_loses_nothing(project: Project, watched: Any) -> None:
    run = watched("run", REVIEW, "--model", project.script())
    waiting = run.until("session.waiting")
    refused = project.run("run", "--continue", waiting["session_id"], expect=3)
    assert f"runs session {waiting['session_id']}" in refused.stderr
    run.process.send_signal(signal.SIGTERM)
    assert run.end() == 130
    session = waiting["session_id"]
    assert f"cockpit run --continue {session}" in run.errors()
    assert run.rows[-1]["action"] == "session.stopped"
    project.run("debug", "journal")

    words = ["run", "--continue", session, "--approve", "all", "--output-format", "json"]
    first = project.json("proposals", "--json")[0]["proposal_id"]
    project.run("proposals", "approve", first)
    document = project.json(*words)
    assert document["session_id"] == session
    assert document["result"]["status"] == "done"
    assert len(document["waves"]) == 3


def test_a_reader_that_leaves_is_no_failure_to_talk_about(project: Project) -> None:
    words = ["run", REVIEW, "--model", project.script(), "--approve", "all"]
    writer = project.start(*words)
    assert writer.stdout is not None
    writer.stdout.read(1)
    writer.stdout.close()
    assert writer.stderr is not None
    errors = writer.stderr.read()
    code = writer.wait(90)
    writer.stderr.close()
    assert (code in (0, 141), errors) == (True, WARNING)


def test_the_limits_of_the_offline_rules_come_before_the_first_wave(project: Project) -> None:
    words = ["run", "what does add do?", "--approve", "all"]
    told = project.run(*words, expect=1).stderr
    assert "offline rules review changes, but write no code" in told.splitlines()[0]
    assert "write no code" not in project.run(*words, "--model", "offline", expect=1).stderr
    assert "write no code" not in project.run("run", REVIEW, "--approve", "all").stderr


def _says_what_happened(document: dict[str, Any]) -> None:
    keys = (
        "session_id task_type state status waves proposals actions usage result estimate untrusted"
    )
    assert set(document) == set(keys.split())
    assert (document["task_type"], document["status"]) == ("review_pr", "completed")
    assert document["result"] == {"status": "done", "summary": "Notes written."}
    assert [wave["phase"] for wave in document["waves"]] == ["completed"] * 3
    packet = document["waves"][1]["packet"]
    keys = "digest token_used rendered_tokens token_budget bands cached_expected cached_reported"
    assert set(packet) == {*keys.split(), "cost_units", "epoch", "prices"}
    assert 0 < packet["rendered_tokens"] < packet["token_used"]
    used = sum(band["used"] for band in packet["bands"].values())
    assert used == packet["token_used"] <= packet["token_budget"] == 150_000
    decided = [(each["kind"], each["status"], each["decided_by"]) for each in document["proposals"]]
    assert decided == [(kind, "approved", "policy:all") for kind in ("context", "action")]
    (action,) = document["actions"]
    assert (action["type"], action["phase"]) == ("write_file", "confirmed")


def test_every_way_to_say_it(project: Project) -> None:
    options = ["--model", project.script(), "--approve", "all"]
    as_json = ["--output-format", "json"]
    for words in (
        [*options, "-p", REVIEW, *as_json],
        ["run", "-", *options, *as_json],
        ["review", "main..feature", *options, *as_json],
    ):
        project.git("clean", "--quiet", "--force")  # the notes of the one before
        done = project.run(*words, stdin=REVIEW)
        assert json.loads(done.stdout)["task_type"] == "review_pr"
        assert done.stderr == WARNING
    first = json.loads(done.stdout)
    _says_what_happened(first)
    assert (project.root / "notes.md").read_text(encoding="utf-8") == "# Notes\n"
    again = project.json("run", "--continue", "look once more", *options, *as_json)
    assert again["session_id"] == first["session_id"]
    assert len(again["waves"]) == len(first["waves"]) + 1
    assert "look once more" in project.run("sessions", "last").stdout


def test_a_review_that_was_not_approved_is_printed_as_a_draft(project: Project) -> None:
    words = ["review", "main..feature", "--model", "offline", "--approve", "reads"]
    done = project.run(*words, "--deadline", "1", expect=4)
    assert "Verdict" in done.stdout and "is a draft" in done.stderr
    assert not (project.root / ".cockpit" / "reviews").exists()
    assert project.json("sessions", "last", "--json")["result"]["review_state"] == "proposed"


def test_words_without_finish_need_an_answer(project: Project) -> None:
    again = (
        '[[turn]]\nwhen = { contains = ["go on"] }\n[[turn.call]]\nname = "finish"\n'
        'arguments = { status = "blocked", summary = "No." }\n'
    )
    model = project.script(f'[[turn]]\ntext = "Tabs or spaces?"\n{again}')
    options = ["--output-format", "json"]
    done = project.run("run", "fix shapes", "--model", model, *options, expect=4)
    document = json.loads(done.stdout)
    assert document["result"] == {"status": "needs_answer", "summary": "Tabs or spaces?"}
    assert "cockpit run --continue s-" in done.stderr
    assert "? waits for you: Tabs or spaces?" in project.run("sessions", "last").stdout
    # Nothing said to it changes nothing, and a blocked one does not become done.
    for message, code, status in (
        ("", 4, "needs_answer"),
        ("go on", 1, "blocked"),
        ("", 1, "blocked"),
    ):
        words = ("run", *filter(None, [message]), "--continue", "last")
        assert project.json(*words, *options, expect=code)["result"]["status"] == status


def test_a_model_that_cannot_answer_fails_the_work(project: Project) -> None:
    for turn, words in (
        ('error = { code = "network", message = "no route" }', "no route"),
        ('text = "  "', "answered without text and without a call"),
    ):
        model = project.script(f"[[turn]]\n{turn}\n")
        assert words in project.run("run", REVIEW, "--model", model, expect=1).stderr
        shown = project.json("sessions", "last", "--json")
        assert "failed" in (shown["status"], shown["result"]["status"])


WRONG = [
    ("proposals p-gone", "Nothing was recorded"),
    ("run", "Say what to do"),
    ("run x --deadline soon", "not a duration"),
    ("run x --max-waves 0", "--max-waves is 0; it must be a whole number from 1 to"),
    ("run x --approve everything", "is not one of"),
    ("run x --model made-up:1", "not a model's name"),
    ("run x --model script:gone.toml", "gone.toml"),
    ("review main..gone", "gone"),
    ("run --continue s-gone", "no session s-gone"),
    ("fly", "No such command"),
    ("reviw", "Did you mean 'review'?"),
    ("--linear doctor", "open the screen"),
    ("", "needs a terminal"),
]


def test_wrong_use_is_told_in_words(project: Project) -> None:
    for words, said in WRONG:
        done = project.run(*words.split(), expect=2)
        assert said in done.stderr and done.stdout == "", words


def test_a_limit_ends_the_session(project: Project) -> None:
    words = ["run", REVIEW, "--model", project.script(), "--approve", "all"]
    document = project.json(*words, "--max-waves", "2", "--output-format", "json", expect=1)
    assert (document["result"]["status"], len(document["waves"])) == ("limit", 2)
    words = ["run", "--continue", document["session_id"], "--max-waves", "9"]
    assert project.json(*words, "--output-format", "json")["result"]["status"] == "done"
