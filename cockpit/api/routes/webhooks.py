"""Events from GitHub: a signature in place of a token, and the user's rules in place of a scope.

See ``docs/how-to/webhooks.md``.
"""

from __future__ import annotations

import hashlib
import re

from starlette.requests import Request
from starlette.responses import Response

from cockpit.api.answers import answered
from cockpit.api.callers import Answer, repeat
from cockpit.api.operations import Topic
from cockpit.api.problem_documents import problem
from cockpit.api.served_project import ServedProject
from cockpit.backlog.github_webhooks import (
    PRINCIPAL,
    PayloadInvalid,
    choose_rule,
    is_signed,
    open_task,
    read_payload,
)
from cockpit.core.errors import CockpitError
from cockpit.store.db import idempotent_answers
from cockpit.store.db.idempotent_answers import KeptAnswer
from cockpit.store.db.transaction import Tx

topic = Topic("webhooks", "/api/webhooks")

SECRET_VARIABLE = "COCKPIT_GITHUB_WEBHOOK_SECRET"  # noqa: S105 - a variable's name
_WORD = re.compile(r"[A-Za-z0-9_-]{1,100}", re.ASCII)
_EVENT = "X-GitHub-Event"
_DELIVERY = "X-GitHub-Delivery"


class SignatureRefused(CockpitError):
    """The request is not signed with the secret of the user's settings."""

    code = "signature_refused"


@topic.operation("POST", "/github", "Take an event of GitHub, which may open a task", "")
async def take_github_event(request: Request) -> Response:
    """Open a task if one of the user's rules fits the event. A repeat of a delivery gets the first answer."""
    project: ServedProject = request.app.state.project
    settings = project.settings
    secret = settings.environment.get(SECRET_VARIABLE, "")
    if not secret or not settings.webhooks:
        return problem("not_found", "No webhook is set up here: it needs a secret and a rule.")
    body = await request.body()
    if not is_signed(secret, body, request.headers.get("x-hub-signature-256", "")):
        raise SignatureRefused("X-Hub-Signature-256 is missing, or not that of this body.")
    event, delivery = request.headers.get(_EVENT, ""), request.headers.get(_DELIVERY, "")
    if not _WORD.fullmatch(event) or not _WORD.fullmatch(delivery):
        raise PayloadInvalid(f"{_EVENT} and {_DELIVERY} say what happened; one is missing.")
    digest = hashlib.sha256(event.encode() + b"\n" + body).hexdigest()
    payload = None if event == "ping" else read_payload(body)

    def take(tx: Tx) -> Answer:
        kept = idempotent_answers.find_in(tx, PRINCIPAL, delivery)
        if kept is not None:
            return repeat(kept, digest)
        rule = None if payload is None else choose_rule(event, payload, settings.webhooks)
        if payload is None or rule is None:
            body_of_answer = {"task_id": None, "created": False, "reason": "no rule fits"}
        else:
            task_id, created = open_task(tx, event, payload, rule)
            reason = f"rule {rule.name}" if created else "it has a task already"
            body_of_answer = {"task_id": task_id, "created": created, "reason": reason}
        answer = Answer(200, body_of_answer)
        idempotent_answers.keep(
            tx, PRINCIPAL, delivery, KeptAnswer(digest, answer.status, answer.body)
        )
        return answer

    return answered(await project.store.write(take))
