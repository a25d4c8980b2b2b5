"""Format numbers for the screen: tokens, durations, money."""

from __future__ import annotations

_DAY = 86_400
_HOUR = 3_600
_MINUTE = 60


def tokens(count: int) -> str:
    """Write a token count in at most six cells: ``0``, ``950``, ``4.1k``, ``113k``, ``1.2M``."""
    if count < 1_000:
        return str(count)
    if count < 99_950:
        return f"{count / 1_000:.1f}k"
    if count < 999_500:
        return f"{count / 1_000:.0f}k"
    return f"{count / 1_000_000:.1f}M"


def span(floor: int, ceiling: int) -> str:
    """Write a range of token counts: ``12–25k``."""
    low, high = _round(floor), _round(ceiling)
    if low.endswith("k") and high.endswith("k"):
        low = low[:-1]
    return f"{low}–{high}"


def _round(count: int) -> str:
    if count < 1_000:
        return str(count)
    thousands = count / 1_000
    return f"{thousands:.0f}k" if thousands >= 10 or count % 1_000 == 0 else f"{thousands:.1f}k"


def duration(seconds: int) -> str:
    """Write seconds in their largest unit: ``12s``, ``4m``, ``3h``, ``2d``."""
    if seconds < _MINUTE:
        return f"{max(0, seconds)}s"
    if seconds < _HOUR:
        return f"{seconds // _MINUTE}m"
    if seconds < _DAY:
        return f"{seconds // _HOUR}h"
    return f"{seconds // _DAY}d"


def money(usd: float) -> str:
    """Write dollars with cents; amounts under a cent keep the digits that matter."""
    return f"${usd:.4f}" if 0 < usd < 0.01 else f"${usd:.2f}"
