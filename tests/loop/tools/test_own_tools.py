"""Tools of a project in sessions: offered once approved, called as actions, run as they were approved."""

from __future__ import annotations

import pytest
from tool_world import (
    approve,
    calling,
    read_proposals,
    read_results,
    run_session,
    write_tool,
)

pytestmark = pytest.mark.slow


async def test_a_tool_that_only_reads_is_called_under_the_policy_reads(opened, script, project):
    write_tool(project)
    async with opened() as runtime:
        await approve(runtime)
        session = await run_session(
            runtime, script(calling("wc", '{ path = "calc.py", minimum = 3 }')), "reads"
        )
        (result,) = await read_results(runtime, session.session_id)
        assert '"words":' in result and "counting calc.py" in result
        (proposal,) = await read_proposals(runtime, session.session_id)
        assert (proposal.body["type"], proposal.risk) == ("own_tool", "low")
        assert proposal.decided_by == "policy:reads"
