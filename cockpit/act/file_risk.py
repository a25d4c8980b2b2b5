"""The risk of changing a file, by its name: whether it steers what runs or what agents read.

A hook call loads this, so it imports nothing that takes time. See ``docs/reference/actions.md``, risk.
"""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cockpit.act.command_risk import Risk

_STEERING = re.compile(
    r"(?ix) ^(?: \.github/ | \.gitlab-ci | \.circleci/ | \.husky/ | \.vscode/ | \.idea/"
    r" | \.cockpit/(?!reviews/[^/]+\.md$) | \.claude/ | \.cursor/ | \.devcontainer/ )"
    r" | (?:^|/)(?: Makefile | justfile | Dockerfile | Jenkinsfile | \.envrc | \.env(?:\..*)?"
    r" | \.pre-commit-config\.yaml | \.gitattributes | \.gitmodules | AGENTS\.md | CLAUDE\.md"
    r" | GEMINI\.md | sitecustomize\.py | \.npmrc | \.pypirc | pip\.conf ) $"
)


def file_risk(path: str) -> Risk:
    """Return high for files that steer what runs or what agents read as rules, low for prose, else medium."""
    if _STEERING.search(path):
        return "high"
    if os.path.splitext(path)[1].casefold() in {".md", ".rst", ".txt", ".adoc"}:
        return "low"
    return "medium"
