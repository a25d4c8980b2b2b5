"""Read ``[webhook.NAME]``: which events of GitHub open a task.

Only the user's own configuration has rules: a repository does not decide what work is begun. Specified in
``docs/how-to/webhooks.md``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from cockpit.config.setting import OutOfBounds
from cockpit.core.read_record import convert
from cockpit.loop.runtime_settings import WebhookRule

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}", re.ASCII)
_REPOSITORY = re.compile(r"[A-Za-z0-9_-]{1,100}/[A-Za-z0-9._-]{1,100}", re.ASCII)
_Text = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]


class _RuleTable(msgspec.Struct, forbid_unknown_fields=True):
    repository: str
    event: Literal["issues", "pull_request"] = "issues"
    actions: Annotated[list[_Text], msgspec.Meta(min_length=1)] = msgspec.field(
        default_factory=lambda: ["labeled"]
    )
    labels: list[_Text] = []
    senders: list[_Text] = []
    task_type: _Text = "feature"
    story: str = ""


def read_webhooks(body: Mapping[str, Any]) -> dict[str, WebhookRule]:
    """Read the rules of a table ``[webhook]``, by name.

    Raises :class:`OutOfBounds`, whose message names the rule and what is allowed.
    """
    return {name: _read_rule(name, table) for name, table in body.items()}


def _read_rule(name: str, table: object) -> WebhookRule:
    where = f"[webhook.{name[:40]}]"
    if _NAME.fullmatch(name) is None:
        raise OutOfBounds(f"{where}: the name of a rule is lower-case letters, digits, - and _")
    try:
        rule = convert(table, _RuleTable)
    except msgspec.ValidationError as error:
        raise OutOfBounds(f"{where}: {error}") from error
    if _REPOSITORY.fullmatch(rule.repository) is None:
        raise OutOfBounds(f"{where} repository must be OWNER/NAME")
    if not rule.labels and not rule.senders:
        raise OutOfBounds(
            f"{where} needs labels or senders: without them every stranger who writes an issue would begin"
            " work on your machine"
        )
    return WebhookRule(
        name,
        rule.repository,
        rule.event,
        tuple(rule.actions),
        tuple(rule.labels),
        tuple(rule.senders),
        rule.task_type,
        rule.story,
    )
