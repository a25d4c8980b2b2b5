"""Several processes at once, and processes that die: a proposal is decided once, versions have no gap."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from cockpit.store.context import profile_changes
from cockpit.store.journal import verify_chain
from cockpit.store.sessions import proposals

RACER = Path(__file__).with_name("adapt_racer.py")
PATIENCE_S = 60


class Race:
    """Processes that stand ready on the desk's file and start together."""

    def __init__(self, desk):
        self.desk = desk

    def run(self, *verbs, proposal=""):
        racers = [
            subprocess.Popen(
                [sys.executable, str(RACER), str(self.desk.store.path), self.desk.name, *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for words in ([verb, proposal] for verb in verbs)
        ]
        try:
            for racer in racers:
                assert racer.stdout.readline() == "ready\n"
            for racer in racers:
                racer.stdin.write("go\n")
                racer.stdin.flush()
            return [racer.communicate(timeout=PATIENCE_S)[0].strip() for racer in racers]
        finally:
            for racer in racers:
                if racer.poll() is None:
                    racer.kill()
                racer.communicate()
            self.ended = [racer.returncode for racer in racers]


@pytest.fixture
def desk(at_desk):
    return at_desk()


def test_one_of_many_decides(desk):
    made = desk.propose(desk.payload())
    told = Race(desk).run("approve", "reject", "approve", "reject", proposal=made.proposal_id)
    first = [word for word in told if word in ("approved", "rejected")]
    assert len(first) == 1
    assert Counter(told)["already_decided"] == 3
    kept = desk.store.read_now(lambda c: profile_changes.load(c, made.proposal_id))
    shown = desk.store.read_now(lambda c: proposals.load(c, made.proposal_id))
    assert kept.status == shown.status == first[0]
    assert desk.versions() == ([1, 2] if first == ["approved"] else [1])
    assert desk.store.read_now(verify_chain.verify).ok


def test_waves_that_begin_at_once_are_each_counted(desk):
    desk.decide(desk.propose(desk.payload(effective_waves=3)).proposal_id)
    versions = Race(desk).run(*["begin"] * 5)
    assert Counter(versions) == {"2": 3, "3": 2}
    assert desk.versions() == [1, 2, 3]
    assert desk.actions()[-1] == "orientation.profile.reverted"


def test_a_horizon_ends_once_however_it_ends(desk):
    desk.decide(desk.propose(desk.payload(effective_waves=1)).proposal_id)
    desk.begin()
    told = Race(desk).run("begin", "rollback", "begin", "rollback")
    assert desk.versions() == [1, 2, 3]
    assert Counter(told)["illegal_transition"] >= 1
    ended = [action for action in desk.actions() if action.endswith(("reverted", "rolled_back"))]
    assert len(ended) == 1


def test_killed_before_the_commit_nothing_was_decided(desk):
    made = desk.propose(desk.payload())
    race = Race(desk)
    assert race.run("die before", proposal=made.proposal_id) == [""]
    assert race.ended == [-signal.SIGKILL]
    assert (desk.versions(), desk.running()) == ([1], None)
    assert desk.decide(made.proposal_id).version == 2


def test_killed_after_the_commit_it_is_decided_and_applied(desk):
    made = desk.propose(desk.payload())
    race = Race(desk)
    race.run("die after", proposal=made.proposal_id)
    assert race.ended == [-signal.SIGKILL]
    kept = desk.store.read_now(lambda c: profile_changes.load(c, made.proposal_id))
    assert (kept.status, kept.applied_version, desk.versions()) == ("approved", 2, [1, 2])
    assert race.run("approve", proposal=made.proposal_id) == ["already_decided"]
    assert desk.propose(desk.payload(), proposal_id=made.proposal_id).version == 2
    assert desk.running().waves_left == 3
    assert desk.store.read_now(verify_chain.verify).ok
