"""Calls of an external agent that were cut off, as when cockpit and the agent were killed.

The agent would make the same call again. See ``docs/reference/agents.md``, sessions.
"""

from __future__ import annotations

import sqlite3

from cockpit.act.dispatch_actions import LOOK_FIRST

_MOST = 5
_UNENDED = """\
SELECT json_extract(began.detail_json, '$.title') FROM journal AS began
WHERE began.session_id=?1 AND began.action='runner.tool_started'
  AND lower(coalesce(json_extract(began.detail_json, '$.kind'), json_extract(began.detail_json, '$.tool')))
    NOT IN ('read', 'search', 'think', 'fetch', 'grep', 'glob')
  AND NOT EXISTS (
    SELECT 1 FROM journal AS ended WHERE ended.session_id=?1 AND ended.action='runner.tool_ended'
      AND ended.seq>began.seq
      AND json_extract(ended.detail_json, '$.call_id')=json_extract(began.detail_json, '$.call_id'))
  AND began.seq>coalesce((
    SELECT max(seq) FROM journal WHERE session_id=?1
      AND (action='session.completed'
        OR (action='runner.turn' AND json_extract(detail_json, '$.end')<>''))), 0)
ORDER BY began.seq LIMIT ?2
"""
"""Calls that began since the session or a turn of it ended last, and have no end."""


def describe_cut_off_calls(connection: sqlite3.Connection, session_id: str) -> str:
    """Return what the agent has to know of its calls that were cut off; empty where there are none."""
    titles = [str(title) for (title,) in connection.execute(_UNENDED, (session_id, _MOST))]
    if not titles:
        return ""
    calls = "\n".join(f"- {title}" for title in titles)
    return f"You were cut off while this ran:\n{calls}\n{LOOK_FIRST}"
