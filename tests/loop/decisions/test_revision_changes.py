"""What a revision says about the proposal that it replaces."""

from cockpit.loop.decisions.revision_changes import list_changes
from cockpit.store.sessions.proposals import Proposal

KEY = "-----BEGIN PRIVATE KEY-----\nMIIBVQIBADANBg\n-----END PRIVATE KEY-----"


def proposal(kind="action", **body):
    empty = dict.fromkeys(Proposal.__struct_fields__, "")
    return Proposal(**{**empty, "kind": kind, "body": body, "narrowed": None})


def test_a_file_is_compared_by_how_it_would_be_written():
    file = {"path": "a.py", "before": "x\ny\n", "after": "x\nz\n"}
    before = proposal(diffs=[file, {"path": "b.py", "before": None, "after": "new\n"}])
    body = {"diffs": [{**file, "after": "w\nz\n"}, {"path": "c.py", "before": "", "after": "c"}]}
    assert list_changes(before, body) == [
        *("a.py changed", "− x", "+ w", "b.py: no longer changed", "c.py: changed as well")
    ]


def test_secrets_of_many_lines_are_masked_before_they_are_compared():
    lines = list_changes(proposal(body="the key"), {"body": f"the key\n{KEY}"})
    assert "MIIBVQ" not in "\n".join(lines)
    assert len(lines) > 1
