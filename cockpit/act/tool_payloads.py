"""The records that tool calls are read into, one per tool.

A record is the tool's JSON Schema as well: a model is shown the descriptions written here. See
``docs/reference/actions.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Struct, field

from cockpit.act.own_tools.tool_definition import ToolDefinition
from cockpit.core.read_record import HIDDEN, describe

MAX_TIMEOUT_S = 600
"""The longest that a command may run, in seconds."""

_PATH = describe("Path from the project's root.")
_REASON = describe("Why, in one sentence, for the user, who decides.")


class WriteFile(Struct, frozen=True):
    """Write ``content`` to the file ``path``, whether it exists or not."""

    path: Annotated[str, _PATH]
    content: Annotated[str, describe("The whole new content.")]


class EditFile(Struct, frozen=True):
    """Replace ``old`` by ``new`` in ``path``, where it occurs exactly once, or everywhere."""

    path: Annotated[str, _PATH]
    old: Annotated[
        str, describe("The exact text to replace, with enough lines around it to be unique.")
    ]
    new: Annotated[str, describe("The text that takes its place.")]
    replace_all: Annotated[bool, describe("Replace every occurrence.")] = False


class RunArguments(Struct, frozen=True, kw_only=True):
    """The arguments of ``run`` as the model writes them: ``argv`` or ``command``, not both."""

    argv: Annotated[
        tuple[str, ...] | None,
        describe("Program and arguments, e.g. ['pytest', '-q', 'tests'].", minItems=1),
    ] = None
    command: Annotated[
        str | None, describe("The same as one line; use argv or command, not both.")
    ] = None
    reason: Annotated[str, _REASON]
    timeout_s: Annotated[
        int,
        describe("Seconds until it is ended; 120 if left out.", minimum=1, maximum=MAX_TIMEOUT_S),
    ] = 120
    changes: Annotated[
        bool,
        describe(
            "Whether it writes files of the project or needs the network. false: it runs where neither "
            "is possible, and where secrets and the repository are not there."
        ),
    ] = True


class Run(Struct, frozen=True):
    """Run ``argv`` (a program and its arguments; no shell) in the project's root.

    ``reason`` is for the user who decides; ``timeout_s`` is 1 to :data:`MAX_TIMEOUT_S` seconds. Without
    ``changes`` it runs in the reading sandbox, where there is one.
    """

    argv: tuple[str, ...]
    reason: str
    timeout_s: int = 120
    changes: bool = True


class GitHub(Struct, frozen=True):
    """Run one ``gh`` command line."""

    command: Annotated[
        str, describe("For example: gh pr review 24 --request-changes --body 'Two findings …'")
    ]


class GitCommit(Struct, frozen=True):
    """Commit exactly ``paths`` as they are in the worktree; other staged files stay staged."""

    message: Annotated[str, describe("The commit message: a subject line, a blank line, why.")]
    paths: Annotated[
        tuple[str, ...],
        describe("Files from the project's root, deleted ones included.", minItems=1),
    ]


class CreateSkill(Struct, frozen=True):
    """Write a skill of the project: ``.cockpit/skills/NAME/SKILL.md``."""

    name: Annotated[str, describe("Lower-case letters, digits and hyphens, e.g. release-notes.")]
    description: Annotated[
        str, describe("What it does and when to use it: later tasks find it by these words.")
    ]
    body: Annotated[
        str, describe("Markdown, at most 50 lines: steps, checks and commands, not the story.")
    ]
    keywords: Annotated[tuple[str, ...], describe("Further words that find it.")] = ()


class ResumeAction(Struct, frozen=True):
    """Propose an action again that was kept."""

    call: Annotated[str, describe("The place of its call, as its result names it, e.g. 3.1.")]


class ProposeTool(Struct, frozen=True):
    """Ask for a tool that does not exist; it grows test first, in the sandbox."""

    name: Annotated[str, describe("Lower-case letters, digits and _, e.g. parse_pcab.")]
    purpose: Annotated[str, describe("What it does, in a sentence or two.", maxLength=1_000)]
    example_input: Annotated[
        str, describe("A real example of its input, as short as it can be.", maxLength=4_000)
    ]
    expected_output: Annotated[
        str, describe("What it has to return for that, exactly.", maxLength=4_000)
    ]
    reason: Annotated[
        str, describe("Why the task needs it, and nothing that exists will do.", maxLength=1_000)
    ]


class RequestContext(Struct, frozen=True):
    """Ask to read. ``scope`` lists scope items as text; the gateway parses them."""

    purpose: Annotated[str, describe("What you are trying to achieve.")]
    question: Annotated[str, describe("The question that these items will answer.")]
    scope: Annotated[
        tuple[str, ...],
        describe(
            "Items: file:PATH[:A-B], file:GLOB (all its files: file:src/**/*.py), "
            "search:REGEX [in GLOB], tree:DIR, symbol:NAME, "
            "diff:RANGE, log:RANGE, pr:N, issue:N, gh:COMMAND (a gh command that reads); results of "
            "earlier calls: receipt:WAVE.CALL; the backlog: handoff:TASK, wip:TASK, note:QUERY; "
            "documents: docs:QUERY. Each may end in ' @outline' or ' @reference'.",
            minItems=1,
        ),
    ]
    escalation: Annotated[str, describe("What you will do if this is not granted.")] = ""


class PlanTask(Struct, frozen=True, kw_only=True):
    """One task of a proposed plan."""

    title: Annotated[str, describe("What is to be done, in one line.", maxLength=300)]
    task_type: Annotated[str, describe("feature, bug, chore, spike, test, docs, refactor or api.")]
    acceptance: Annotated[
        tuple[str, ...], describe("What shows that it is done: one check each.", minItems=1)
    ]
    description: Annotated[str, describe("What its implementer must know.", maxLength=8_000)] = ""
    files: Annotated[
        tuple[str, ...], describe("Files and folders of the project that it will change.")
    ] = ()
    after: Annotated[
        tuple[str, ...],
        describe('What it waits for: numbers of tasks of this plan ("1"), or backlog ids ("T-9").'),
    ] = ()
    story: Annotated[str, describe("The title of the story that it belongs to.", maxLength=300)] = (
        ""
    )


class ProposePlan(Struct, frozen=True, kw_only=True):
    """Propose tasks for the backlog; the user decides over all of them at once."""

    tasks: Annotated[
        tuple[PlanTask, ...], describe("The tasks, in the order of the work.", minItems=1)
    ]
    epic: Annotated[
        str, describe("A title for all of it, where there are stories.", maxLength=300)
    ] = ""
    notes: Annotated[
        str, describe("What the user should know: what you assumed or left out.", maxLength=4_000)
    ] = ""


class ChangeTaskType(Struct, frozen=True):
    """Ask the user to make this session one of another task type."""

    task_type: Annotated[str, describe("The new type, for example implement, bug or docs.")]
    reason: Annotated[str, _REASON]


class WorkDecision(Struct, frozen=True):
    """One decision about the task and its reason."""

    decision: Annotated[str, describe("What was decided, in one sentence.", maxLength=2_000)]
    reason: Annotated[str, describe("Why, in one sentence.", maxLength=2_000)] = ""


class UpdateWip(Struct, frozen=True, kw_only=True):
    """Record what the next session on this task must know."""

    decisions: Annotated[
        tuple[WorkDecision, ...], describe("Decisions made since the last call.", maxItems=20)
    ] = ()
    context: Annotated[
        str, describe("What else matters for the work; replaces the last one.", maxLength=8_000)
    ] = ""
    next_step: Annotated[
        str, describe("The next step, in one sentence; replaces the last one.", maxLength=2_000)
    ] = ""


class Finish(Struct, frozen=True):
    """End the task, in the agent's own judgement."""

    status: Literal["done", "blocked"]
    summary: Annotated[str, describe("What was found or done, or what is in the way.")]


class ProposeProfileChange(Struct, frozen=True, kw_only=True):
    """Ask for a temporary profile change. :mod:`cockpit.orient.profile_changes.parse_change` reads
    ``bands`` and ``rules``; the hidden fields are read so that the guard can refuse them by code."""

    base_profile_version: Annotated[
        int,
        describe("The current version; it is in this tool's description.", minimum=1),
    ]
    effective_waves: Annotated[int, describe("For how many waves it is to hold.", minimum=1)]
    bands: Annotated[
        Mapping[str, Any], describe("By band: any of min_tokens, target_tokens, max_tokens.")
    ] = field(default_factory=dict)
    rules: Annotated[
        tuple[Any, ...],
        describe(
            "By rule_id: any of priority_weight (0 to 4), risk_weight, "
            "novelty_weight (0 to 1), recency_half_life (waves)."
        ),
    ] = ()
    reason: Annotated[str, _REASON]
    total_token_budget: Annotated[Any, HIDDEN] = None
    namespace: Annotated[Any, HIDDEN] = None
    requested_by: Annotated[Any, HIDDEN] = None


class AddedCall(Struct, frozen=True):
    """Call a tool that cockpit does not bring: of the user, the project, a skill or an MCP server."""

    definition: ToolDefinition
    arguments: Mapping[str, Any]


Action = WriteFile | EditFile | Run | GitHub | GitCommit | CreateSkill | ProposeTool | AddedCall
Payload = (
    Action
    | ResumeAction
    | RequestContext
    | ProposeProfileChange
    | ProposePlan
    | ChangeTaskType
    | UpdateWip
    | Finish
)
