"""What a prompt says in cockpit's own words: its text without what stands between fences."""

from __future__ import annotations

import re


def outside_fences(text: str) -> str:
    """Return the text without what stands between fences; a fence is closed by one as long as its own."""
    kept: list[str] = []
    open_fence = ""
    for line in text.splitlines():
        ticks = re.match(r"`{3,}", line)
        if open_fence:
            if line.strip() == open_fence:
                open_fence = ""
            continue
        if ticks:
            open_fence = ticks[0]
            continue
        kept.append(re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", line))
    return "\n".join(kept)
