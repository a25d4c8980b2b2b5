"""``cockpit profile`` and ``cockpit tokens`` as processes: codes, exits, and who may."""

from __future__ import annotations

import json
import stat

import pytest
from adapt_world import cockpit
from sandbox_here import WARNING
from state_for_tests import state_of

pytestmark = pytest.mark.slow

CHANGE = {
    "base_profile_version": 1,
    "effective_waves": 3,
    "rules": [{"rule_id": "search", "priority_weight": 2.5}],
    "reason": "a storm",
}


@pytest.fixture
def run(project):
    """Runs ``cockpit`` in the weather project."""

    def runner(*words, **given):
        return cockpit(project, *words, **given)

    return runner


@pytest.fixture
def propose(run, tmp_path):
    """Proposes a change; returns what it printed as JSON."""

    def proposer(change=None, *, text=None, expect=0, token="", **fields):
        path = tmp_path / "change.json"
        path.write_text(text if text is not None else json.dumps((change or CHANGE) | fields))
        words = ["--token", token] if token else []
        done = run("profile", "propose", str(path), "--json", *words, expect=expect)
        return json.loads(done.stdout)

    return proposer


def shown(run, *words):
    return json.loads(run("profile", "show", "--json", *words).stdout)


def test_a_profile_is_shown_with_what_a_change_needs(run):
    profile = shown(run)
    assert profile["version"] == 1
    assert profile["total_token_budget"] == 150_000
    assert profile["horizon_waves"] == 0
    assert profile["bands"][0] == {
        "band": "identity",
        "min_tokens": 12_000,
        "target_tokens": 18_000,
        "max_tokens": 25_000,
    }
    assert {"rule_id", "source_type", "priority_weight", "enabled"} <= profile["rules"][0].keys()


def test_proposed_approved_shown_and_rolled_back(run, propose):
    made = propose()
    assert (made["status"], made["code"]) == ("pending", None)
    assert all(entry["ok"] for entry in made["verdict"])
    waiting = json.loads(run("proposals", "list", "--json").stdout)
    assert [(one["proposal_id"], one["kind"]) for one in waiting] == [
        (made["proposal_id"], "profile")
    ]
    text = run("proposals", "show", made["proposal_id"]).stdout
    assert "search: priority 0.9" in text
    assert "outside any session" in text

    assert shown(run)["version"] == 1
    done = json.loads(run("profile", "approve", made["proposal_id"], "--json").stdout)
    assert (done["status"], done["version"]) == ("approved", 2)
    now = shown(run)
    assert (now["version"], now["horizon_waves"]) == (2, 3)
    assert now["adaptation"]["waves_left"] == 3
    assert "3 of 3 waves left" in run("profile", "show").stdout

    found = json.loads(run("profile", "diff", "1", "2", "--json").stdout)
    assert [entry["rule_id"] for entry in found["rules"]] == ["search"]
    assert "search priority_weight: 0.9 → 2.5" in run("profile", "diff", "1", "2").stdout

    back = json.loads(run("profile", "rollback", "--json").stdout)
    assert back["version"] == 3
    assert "The versions are the same" in run("profile", "diff", "1", "3").stdout
    history = json.loads(run("profile", "history", "--json").stdout)
    assert [one["version"] for one in history] == [1, 2, 3]
    changes = json.loads(run("profile", "changes", "--json").stdout)
    assert [(one["status"], one["version"]) for one in changes] == [("approved", 2)]
    run("journal", "verify")


def test_the_proposals_command_decides_profiles_as_well(run, propose):
    run("proposals", "approve", propose()["proposal_id"])
    assert shown(run)["version"] == 2
    run("profile", "rollback")
    second = propose(base_profile_version=3)
    run("proposals", "reject", second["proposal_id"], "--reason", "not now")
    assert shown(run)["version"] == 3
    third = propose(base_profile_version=3)
    run("proposals", "discuss", third["proposal_id"], "--words", "why?")
    assert shown(run)["version"] == 3
    run("proposals", "approve", third["proposal_id"], expect=3)


REFUSED = {
    "critical_source": {"rules": [{"rule_id": "task", "enabled": False}]},
    "floor_below_minimum": {"bands": {"objectives": {"min_tokens": 0}}},
    "over_budget": {"total_token_budget": 150_001},
    "horizon_too_long": {"effective_waves": 51},
    "stale_base": {"base_profile_version": 7},
    "namespace_spoofed": {"namespace": "agent/s-1"},
    "capability_relaxed": {"scopes": ["orientation.admin"]},
    "band_invalid": {"bands": {"exploration": {"target_tokens": 1}}},
    "malformed": {"total_token_budget": -1},
}


@pytest.mark.parametrize("code", REFUSED)
def test_a_refusal_prints_its_code_and_ends_with_three(run, propose, tmp_path, code):
    before = shown(run)
    told = propose(**REFUSED[code], expect=3)
    assert (told["status"], told["code"]) == ("rejected", code)
    path = tmp_path / "again.json"
    path.write_text(json.dumps(CHANGE | REFUSED[code]))
    done = run("profile", "propose", str(path), expect=3)
    assert code in done.stdout
    assert code in done.stderr
    assert shown(run)["digest"] == before["digest"]
    assert json.loads(run("proposals", "list", "--json").stdout) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"base_profile_version": 1, "effective_waves": NaN}',
        '{"base_profile_version": 1, "effective_waves": 3, "total_token_budget": 1000000000000}',
        '{"base_profile_version": 1, "base_profile_version": 1, "effective_waves": 3}',
    ],
    ids=["empty", "cut", "NaN", "10^12", "twice"],
)
def test_what_is_no_change_is_refused_closed(propose, run, text):
    assert propose(text=text, expect=3)["code"] == "malformed"
    assert [one["code"] for one in json.loads(run("profile", "changes", "--json").stdout)] == [
        "malformed"
    ]


def test_a_file_that_is_not_there_is_wrong_use(run):
    run("profile", "propose", "nowhere.json", expect=2)


def test_standard_input_is_read(run):
    done = run("profile", "propose", "-", "--json", stdin=json.dumps(CHANGE))
    assert json.loads(done.stdout)["status"] == "pending"


def test_what_was_not_shown_is_not_approved(run, propose):
    made = propose()
    done = run("profile", "approve", made["proposal_id"], "--shown", "0" * 8, expect=3)
    assert "stale" in done.stdout
    run("profile", "approve", "p-none", expect=2)


def test_an_export_comes_back_as_a_proposal(run, tmp_path):
    path = tmp_path / "profile.json"
    run("profile", "export", "--output", str(path))
    profile = json.loads(path.read_text())
    assert profile == json.loads(run("profile", "export").stdout)
    same = run("profile", "import", str(path), expect=3)
    assert "malformed" in same.stdout
    profile["bands"][3]["max_tokens"] = 100_000
    profile["rules"] = [one for one in profile["rules"] if one["rule_id"] != "tree"]
    path.write_text(json.dumps(profile))
    made = json.loads(run("profile", "import", str(path), "--reason", "ours", "--json").stdout)
    run("profile", "approve", made["proposal_id"])
    now = shown(run)
    assert (now["version"], now["horizon_waves"], now["adaptation"]) == (2, 0, None)
    assert now["bands"] == profile["bands"]
    assert now["rules"] == profile["rules"]
    profile["bands"][0]["min_tokens"] = 0
    path.write_text(json.dumps(profile))
    done = run("profile", "import", str(path), expect=3)
    assert "floor_below_minimum" in done.stdout


def issued(run, *words):
    return run("tokens", "issue", *words).stdout.strip()


def test_the_first_start_makes_a_root_token_and_says_where(run, project):
    done = run("tokens", "issue", "--namespace", "ci", "--scope", "orientation.read")
    path = state_of(project) / "root.token"
    assert str(path) in done.stderr
    root = path.read_text().strip()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert root not in done.stdout + done.stderr
    again = run("tokens", "issue", "--namespace", "ci", "--scope", "orientation.read")
    assert str(path) not in again.stderr
    listed = run("tokens", "list")
    assert str(path) in listed.stderr
    assert root not in listed.stdout
    assert done.stdout.strip() not in listed.stdout


def test_a_run_on_a_pipe_makes_the_root_token_without_a_word(run, project, tmp_path):
    story = tmp_path / "story.toml"
    call = 'name = "finish"\narguments = { status = "done", summary = "looked" }'
    story.write_text(f'[[turn]]\ntext = "Nothing to do."\n[[turn.call]]\n{call}\n')
    words = ("run", "investigate this", "--model", f"script:{story}", "--approve", "all")
    assert run(*words).stderr == WARNING
    path = state_of(project) / "root.token"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert str(path) in run("tokens", "list").stderr


def test_an_agents_token_proposes_and_never_approves(run, propose):
    scopes = ("--scope", "orientation.read", "--scope", "orientation.propose")
    token = issued(run, "--namespace", "agent/s-9", *scopes)
    made = propose(token=token)
    changes = json.loads(run("profile", "changes", "--json").stdout)
    assert changes[0]["requested_by"] == "agent/s-9"
    for words in (
        ("profile", "approve", made["proposal_id"]),
        ("profile", "reject", made["proposal_id"]),
        ("profile", "rollback"),
    ):
        done = run(*words, "--token", token, expect=3)
        assert "not_allowed" in done.stdout
        assert "not_allowed" in run(*words, expect=3, COCKPIT_TOKEN=token).stdout
    run("proposals", "approve", made["proposal_id"], expect=3, COCKPIT_TOKEN=token)
    assert propose(token=token, namespace="main", expect=3)["code"] == "namespace_spoofed"
    outside = propose(token=token, total_token_budget=140_000, expect=3)
    assert outside["code"] == "outside_envelope"
    assert shown(run)["version"] == 1
    run("profile", "approve", made["proposal_id"])
    assert shown(run)["version"] == 2


def test_stale_tokens_are_refused_with_their_code(run, propose):
    scope = ("--scope", "orientation.propose")
    revoked = json.loads(run("tokens", "issue", "--namespace", "ci", *scope, "--json").stdout)
    run("tokens", "revoke", revoked["cap_id"])
    expired = issued(run, "--namespace", "ci", *scope, "--expires", "0.001s")
    told = {
        "token_revoked": revoked["token"],
        "token_expired": expired,
        "token_unknown": "ckp_" + "x" * 40,
    }
    for code, token in told.items():
        assert propose(token=token, expect=3)["code"] == code
    assert json.loads(run("profile", "changes", "--json").stdout) == []
    statuses = {one["status"] for one in json.loads(run("tokens", "list", "--json").stdout)}
    assert statuses == {"valid", "revoked", "expired"}


def test_a_token_without_the_scope(run, propose):
    token = issued(run, "--namespace", "ci", "--scope", "orientation.read")
    assert propose(token=token, expect=3)["code"] == "not_allowed"
    run("tokens", "issue", "--namespace", "x", "--scope", "cap.issue", "--token", token, expect=3)
    run("tokens", "issue", "--namespace", "../x", "--scope", "cap.issue", expect=2)
    run("tokens", "issue", "--namespace", "x", "--scope", "everything", expect=2)


def test_a_project_may_only_tighten(run, project):
    config = project / ".cockpit" / "config.toml"
    config.parent.mkdir(exist_ok=True)
    for line in (
        'auto = "weights"',
        'at_horizon = "promote_if_better"',
        "max_waves = 51",
        "floor_percent = 99",
        "min_judged_waves = 2",
    ):
        config.write_text(f"[adaptation]\n{line}\n")
        done = run("profile", "show", expect=2)
        assert "config.toml" in done.stderr
    config.write_text('[adaptation]\nauto = "never"\nmax_waves = 2\n')
    told = run("profile", "propose", "-", expect=3, stdin=json.dumps(CHANGE))
    assert "horizon_too_long" in told.stdout
