"""A command that says it changes nothing runs unasked under ``reads``, where it can do nothing else."""

from __future__ import annotations

import pytest
from loop_runs import running, wait_until
from scenario import finish, turn

from cockpit.store.context import facts
from cockpit.store.sessions import outbox, proposals

pytestmark = pytest.mark.slow


async def run_command(runtime, script, policy, *argv):
    """Run a session whose model runs ``argv`` and says that it changes nothing."""

    def rest():
        made = runtime.store.read_now(lambda c: proposals.select_for_session(c, sid))
        is_resting = work.done() or any(each.status == "pending" for each in made)
        return made if is_resting else None

    def read(connection):
        ids = connection.execute(
            "SELECT fact_id FROM session_facts WHERE session_id=? AND source_type='exchange'",
            (sid,),
        ).fetchall()
        exchanges = facts.load_provenances(connection, "exchange", [each for (each,) in ids])
        return outbox.select_for_session(connection, sid), exchanges

    ran = turn("run", argv=argv, reason="look", changes=False)
    model = script(ran + finish('called = ["run"]'))
    async with running(runtime, model, policy=policy, interactive=False) as (sid, work):
        made = await wait_until(runtime, rest)
        return made, *await runtime.store.read(read)


async def test_reads_passes_it_and_its_output_is_a_masked_read(opened, script, project):
    project.chmod(0o755)
    key = "ghp_" + "a1B2" * 9
    words = ("python3", "-c", f"print(6 * 7, '{key[::-1]}'[::-1])")
    async with opened() as runtime:
        made, actions, exchanges = await run_command(runtime, script, "reads", *words)
    assert [(each.status, each.decided_by) for each in made] == [("approved", "policy:reads")]
    assert [each.phase for each in actions] == ["confirmed"]
    (provenance,) = exchanges.values()
    assert provenance["sandbox"] == "reading"
    assert "42" in provenance["result"] and key not in provenance["result"]


async def test_a_refused_write_becomes_the_proposal_to_change_something(opened, script, project):
    project.chmod(0o755)
    async with opened() as runtime:
        made, actions, _ = await run_command(runtime, script, "reads", "touch", "calc.py")
    first, second = made
    assert (first.decided_by, second.status) == ("policy:reads", "pending")
    assert "touch: cannot touch" in second.body["notes"][0]
    assert not second.body["payload"].get("reading")
    assert [each.phase for each in actions] == ["failed_terminal", "planned"]


async def test_where_context_waits_for_the_user_such_a_command_does_too(opened, script, project):
    project.chmod(0o755)
    async with opened() as runtime:
        made, _, _ = await run_command(runtime, script, "trusted", "true")
    assert [each.status for each in made] == ["pending"]
    assert dict(made[0].body["fields"])["sandbox"].startswith("reading:")
