"""Why a worker of a chain ended, as it is stored and as users read it. See ``docs/reference/chains.md``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

TOKEN_LIMIT: Final = "pressure"  # noqa: S105 - a reason, no secret
"""Stored reason: the worker reached its token limit, or its packets left out too much."""
BATCH_LIMIT: Final = "quota"
"""Stored reason: the worker has done its number of batches."""
CHAIN_LIMIT: Final = "limit"
"""Stored reason: the chain reached its limit of cost or time; no worker follows."""
DRAINED: Final = "drained"
"""Stored reason: the user asked the chain to stop."""

HANDOVER_REASONS: Final = (TOKEN_LIMIT, BATCH_LIMIT)
"""Reasons after which the next worker starts."""

END_REASONS: Final[Mapping[str, str]] = {
    TOKEN_LIMIT: "handed over: it reached its token limit",
    BATCH_LIMIT: "handed over: its batches were done",
    "empty": "no tasks were left",
    "held": "the remaining tasks wait for others",
    DRAINED: "stopped after the current steps",
    CHAIN_LIMIT: "the chain reached its limit of cost or time",
    "stopped": "was stopped",
}
"""Text for users by stored reason. Any other stored reason is already a text."""
