"""The columns of the journal, in the order in which a row's digest has them.

``docs/reference/journal.md`` specifies them.
"""

from __future__ import annotations

COLUMNS = (
    "seq",
    "at",
    "trace_id",
    "session_id",
    "wave_id",
    "packet_id",
    "profile_id",
    "profile_version",
    "actor",
    "action",
    "result",
    "latency_ms",
    "error_code",
    "detail_json",
    "digest",
)
"""The digest itself is the last one."""
