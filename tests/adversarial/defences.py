"""Take defences out, one after the other, and see a test fail for each.

``python tests/adversarial/defences.py [NAME…]`` prints a table; ``make defences`` runs it. A defence is a
function of cockpit whose code is replaced in a process of its own, so that everyone who imported it has the
replacement; then the tests that are to show the defence run in that process, and one of them must fail.
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

TESTS = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Defence:
    """A defence, how it is taken out, and the tests that must fail then."""

    name: str
    function: str
    """``module:name``; ``name`` may be that of a class and its method or property."""
    without: Callable[..., Any]
    """What stands in its place; it sees the globals of the function's own module."""
    tests: str
    """A file below ``tests``, with ``::`` and a test where one is enough."""


def _nothing(*_: Any, **__: Any) -> None:
    return None


def _empty(*_: Any, **__: Any) -> str:
    return ""


def _no(*_: Any, **__: Any) -> bool:
    return False


def _yes(*_: Any, **__: Any) -> bool:
    return True


def _first(value: Any, *_: Any, **__: Any) -> Any:
    return value


def _same_digest(*_: Any) -> str:
    return "0" * 64


def _approved_digest(_: Any, definition: Any) -> str:
    return str(definition.digest)


def _three_ticks(_: str) -> str:
    return "```"


_TOOLS = "cockpit.act.own_tools"


def _no_list(*_: Any, **__: Any) -> list[Any]:
    return []


def _keep_all(self: Any, piece: bytes) -> None:
    self._buffer += piece


def _make_folder(folder: str) -> None:
    os.makedirs(folder, exist_ok=True)  # noqa: PTH103


def _now(self: Any, *_: Any) -> float:
    return float(self._now())


async def _pass_on(_: Any, message: Any) -> Any:
    return message


_PROPOSALS, _OUTBOX = "cockpit.store.sessions.proposals", "cockpit.store.sessions.outbox"
_EDITED = "adversarial/test_edited_rows.py"
_TAMPERED = "adversarial/test_tampering.py"
_PROJECT, _INTAKE = "cockpit.core.project", "cockpit.loop.intake"
_PRESENCE, _DECIDES = "cockpit.access.user_presence", "adversarial/test_who_decides.py"
_WORDS_IN_A_FENCE = "test_the_words_of_a_project_stand_in_a_fence_that_they_cannot_leave"
_OPENING = "loop/intake/test_opening.py"
_PERMISSIONS = "cockpit.loop.permissions"
_PERMITTED = "loop/permissions/test_permission_policy.py"
_BOUNDS = "agents/acp_client/test_acp_bounds.py"
_TERMINALS, _TRANSPORT = "cockpit.agents.terminals", "cockpit.agents.acp_client.bounded_transport"
DEFENCES = (
    Defence("secrets are masked", "cockpit.core.secrets:_mask_once", _first,
            "observe/test_observe_masking.py"),
    Defence("what is not a known read is not a read",
            "cockpit.access.commands.reading_place:why_not_read", _empty,
            "access/test_plain_reads.py::test_outside_the_sandbox_its_files_decide"),
    Defence("foreign text has a frame", "cockpit.commands.sessions.proposal_text:barred",
            lambda text, *_: text.split("\n"), "adversarial/test_frames.py"),
    Defence("services decide only with the scope for it",
            "cockpit.loop.decisions.decide_proposal:name_decider", lambda caller: caller.namespace,
            "api/test_api_decisions.py::test_only_the_user_and_services_that_were_given_it_decide"),
    Defence("what changed since it was read is not changed over HTTP",
            "cockpit.api.answers:require_match", _nothing,
            "api/test_api_work.py::test_a_task_is_created_once_and_changed_as_it_was_read"),
    Defence("events of GitHub are signed", "cockpit.backlog.github_webhooks:is_signed", _yes,
            "api/test_api_webhooks.py::test_unsigned_wrong_and_broken_requests_do_nothing"),
    Defence("text of GitHub is fenced", "cockpit.core.fenced_text:fence_text", _first,
            "api/test_api_webhooks.py::test_a_signed_event_that_a_rule_fits_opens_one_task"),
    Defence("a key counts for what its user saw",
            "cockpit.app.terminal.far_key_times:FarKeyTimes._find_moment", _now, "app/test_far_key_times.py"),
    Defence("a killed restoration is finished",
            "cockpit.store.backup.restore_state:_has_row", _no,
            "store/backup/test_backup.py"
            "::test_a_restoration_killed_at_any_step_leaves_the_old_or_the_restored_state"),
    Defence("escape sequences are removed", "widgets.text.clean:clean", _first, "widgets/test_clean.py"),
    Defence("a proposal is the one that was shown", f"{_PROPOSALS}:require_as_shown", _nothing,
            f"{_EDITED}::test_an_edited_proposal_is_not_approved"),
    Defence("what takes effect was approved", f"{_PROPOSALS}:load_approved", lambda c, i: load(c, i),  # type: ignore[name-defined]  # noqa: F821
            f"{_EDITED}::test_what_was_not_approved_is_not_queued"),
    Defence("an action is the one that was approved", f"{_OUTBOX}:require_as_queued",
            lambda tx, i: load(tx.connection, i),  # type: ignore[name-defined]  # noqa: F821
            f"{_EDITED}::test_an_edited_action_is_not_run"),
    Defence("a grant is the one that was given",
            "cockpit.store.sessions.context_requests:_require_granted", _nothing,
            f"{_EDITED}::test_a_grant_that_was_widened_reads_nothing"),
    Defence("a permission has a process that waits", f"{_PERMISSIONS}.waiting_permission:is_abandoned", _no,
            "loop/permissions/test_permission_properties.py"
            "::test_a_process_that_was_killed_leaves_nothing_to_allow"),
    Defence("secrets in other forms are masked", "cockpit.core.masking.hidden_secrets:mask_hidden",
            _first, "adversarial/test_harder_secrets.py::test_secrets_in_harder_forms_are_masked"),
    Defence("a command that hides what it runs asks",
            "cockpit.access.commands.judge_command:_Judging._require_known", _nothing,
            "adversarial/test_unjudged_commands.py::test_what_a_command_hides_is_asked_about"),
    Defence("a terminal of a process without one is nobody's", f"{_PRESENCE}:_explain_terminal", _empty,
            "adversarial/test_presence_in_browser.py"
            "::test_a_terminal_is_its_users_where_the_system_made_it_for_them"),
    Defence("what changes in the user's checkout is said",
            "cockpit.agents.runs.watch_checkouts:_compare", _empty,
            "agents/test_runners_task.py::test_what_it_writes_into_the_users_checkout_is_said"),
    Defence("deny rules reach every way in", f"{_PERMISSIONS}.judge_tool:find_denial",
            lambda command: Denial(),  # noqa: F821 - of its module
            f"{_PERMITTED}::test_deny_rules_are_the_same_for_every_way_in"),
    Defence("no agent changes cockpit's state", f"{_PERMISSIONS}.judge_tool:find_write_denial", _empty,
            f"{_PERMITTED}::test_cockpits_own_state_is_denied"),
    Defence("no answer counts for ever", f"{_PERMISSIONS}.choose_option:choose_option",
            lambda options, **_: options[0],
            f"{_PERMITTED}::test_options_are_chosen_by_kind_and_never_for_always"),
    Defence("files of secrets are not opened for a diff", f"{_PERMISSIONS}.complete_edits:is_sensitive", _no,
            f"{_PERMITTED}::test_a_file_outside_or_of_secrets_is_not_opened"),
    Defence("a script is the one that was shown", "cockpit.act.named_scripts:why_changed", _empty,
            "act/test_named_scripts.py"),
    Defence("guards refuse actions", "cockpit.act.guards.action_guard:first_refusal", _nothing,
            "act/guards/test_act_guards.py"),
    Defence("protected tests are not changed", "cockpit.act.protected_tests:is_test", _no,
            "tasks/test_taskrun_roles.py::test_the_guard_turns_back_what_touches_a_test"),
    Defence("no path leads to .git", "cockpit.access.confined_paths:_is_git", _no,
            "access/test_access_paths.py"),
    Defence("a store has cockpit's schema", "cockpit.store.db.check_schema:check_schema", _nothing,
            "store/test_check_schema.py"),
    Defence("state is in folders of one's own", "cockpit.core.state_folder:describe_problem", _empty,
            "core/test_core_project_paths.py::test_a_folder_of_another_user_is_refused"),
    Defence("the journal's end is anchored", "cockpit.store.journal.head_anchor:compare", _empty,
            f"{_TAMPERED}::test_an_older_copy_in_place_of_the_store_is_told"),
    Defence("rows of the journal are chained", "cockpit.store.journal.verify_chain:verify",
            lambda *_: Verdict(1, None),  # type: ignore[name-defined]  # noqa: F821
            f"{_TAMPERED}::test_random_changes_are_told"),
    Defence("the screen warns of a changed store", "cockpit.store.db.keep_anchor:StoreAnchor.warning", _empty,
            "app/test_store_warning.py"),
    Defence("a decision is armed by a pause", "cockpit.app.key_policy:KeyPolicy.is_armed", _yes,
            "app/test_key_policy.py"),
    Defence("secret files are not read", "cockpit.access.secret_files:is_sensitive", _no,
            "observe/test_observe_by_reference.py::test_of_a_file_of_secrets_only_the_names_are_kept"),
    Defence("dead chains are closed", "cockpit.chains.supervisor:find_dead_chains", _no_list,
            "chains/test_dead_chains_seen.py::test_below_an_agent_only_what_sees_all_processes_closes_it"),
    Defence("what crashes waits", "cockpit.store.chains.retry_delays:retry_delay", lambda *_: 0.0,
            "chains/test_chain_backoff.py::test_the_pause_grows_and_is_bounded"),
    Defence("a project's files load with the user's trust", f"{_PROJECT}.project_trust:is_trusted", _yes,
            "adversarial/test_hostile_repository.py::test_its_task_type_reads_nothing_without_trust"),
    Defence("a repository's settings run nothing", "cockpit.access.git_overrides:safe_settings", _no_list,
            "access/test_git_overrides.py"),
    Defence("git follows no redirect of others", "cockpit.access.git_folders:find_refused_redirect",
            _nothing, "adversarial/test_redirects.py"),
    Defence("a project's settings only tighten", "cockpit.config.load_settings:_Layers._check_project",
            _nothing, "commands/test_project_settings.py"),
    Defence("a project's roles only tighten", f"{_INTAKE}.roles:_only_tighter", _nothing,
            "tasks/test_taskrun_roles.py"),
    Defence("names are plain", "cockpit.core.text:is_plain", _yes, "adversarial/test_names.py"),
    Defence("names are of one alphabet", "cockpit.core.text:mixes_scripts", _no,
            "adversarial/test_names.py"),
    Defence("no text closes its fence", "cockpit.core.fenced_text:fence_for", lambda *_: "`" * 3,
            "core/test_core_fenced_text.py"),
    Defence("a code span stays closed", "cockpit.core.fenced_text:code_span", lambda line: f"`{line}`",
            "core/test_core_fenced_text.py"),
    Defence("a first message fences what others wrote", "cockpit.core.fenced_text:fence_text", _first,
            f"{_OPENING}::test_a_commit_message_cannot_leave_its_fence"),
    Defence("a first message quotes what others named", "cockpit.core.fenced_text:code_span", _first,
            f"{_OPENING}::test_a_commit_message_cannot_leave_its_fence"),
    Defence("a project's words stand in a fence", "cockpit.core.fenced_text:project_section", _first,
            f"loop/intake/test_task_types.py::{_WORDS_IN_A_FENCE}"),
    Defence("an agent is known by its environment", f"{_PRESENCE}:_find_agent_in", _empty,
            f"{_DECIDES}::test_another_process_is_judged_by_what_it_was_started_with"),
    Defence("nobody decides without a terminal", f"{_PRESENCE}:_explain_terminal", _empty,
            f"{_DECIDES}::test_another_process_is_judged_by_what_it_was_started_with"),
    Defence("a hidden program has no name", f"{_PRESENCE}:Process.program", lambda self: self.name,
            f"{_DECIDES}::test_a_process_that_hides_its_program_is_not_taken_for_the_systems"),
    Defence("who sends the user's token is asked", "cockpit.access.http.socket_peer:explain_peer_absence",
            _empty, f"{_DECIDES}::test_a_request_from_an_agents_shell_is_not_the_users"),
    Defence("a token allows what its scopes say", "cockpit.access.principals:Caller.require", _nothing,
            "loop/decisions/test_adapt_tokens.py"),
    Defence("a note steers no terminal", "cockpit.access.notices:_clean", _first,
            "adversarial/test_canaries.py::test_a_note_steers_nothing_and_tells_no_secret"),
    Defence("an open cockpit's socket is the user's", "cockpit.core.open_cockpits:_make_private",
            _make_folder, "core/test_core_open_cockpits.py"),
    Defence("only an agent's own transcript is read", f"{_TERMINALS}.read_transcript:_is_own_file", _yes,
            "hook/test_hook_sessions.py::test_tokens_come_from_the_transcript_each_once"),
    Defence("a made-up terminal starts nothing", f"{_TERMINALS}.jump_to_terminal:_is_own_socket", _yes,
            "agents/test_jump_to_terminal.py::test_a_place_that_is_made_up_starts_nothing"),
    Defence("agents are added by the user", f"{_PRESENCE}:require_no_agent", _nothing,
            "agents/acp_client/test_agent_registry.py::test_no_agent_adds_an_agent"),
    Defence("a message of an agent has a bound", "cockpit.agents.runs.agent_process:LineReader._append",
            _keep_all, f"{_BOUNDS}::test_a_line_without_an_end_in_sight_is_skipped"),
    Defence("an agent's request is answered once", f"{_TRANSPORT}:BoundedTransport._route", _pass_on,
            f"{_BOUNDS}::test_two_requests_with_one_id_are_answered_once"),
    Defence("what others wrote in an event is not an event",
            "cockpit.loop.views.story:Storyteller._behind_bar", lambda self, line: line,
            "adversarial/test_frames.py::test_what_others_wrote_in_an_event_of_a_story_is_no_event"),
    Defence("an agent's scopes bound its tools", "cockpit.access.principals:Caller.require", _nothing,
            "backlog/test_work_tools.py"),
    Defence("a tool's file is the one that was approved", f"{_TOOLS}.tool_files:digest_files", _same_digest,
            "loop/tools/test_serve_own_tools.py::test_a_file_that_changes_after_its_approval_does_not_run"),
    Defence("a guard can only refuse", "cockpit.act.guards.project_guards:read_verdict", _nothing,
            "loop/tools/test_own_guards.py::test_a_guard_that_wants_to_do_more_refuses_and_does_nothing"),
    Defence("an approval is of this version of a tool",
            "cockpit.loop.tools.tool_catalog:ToolCatalog._find_digest", _approved_digest,
            "loop/tools/test_serve_own_tools.py::test_a_module_that_is_new_beside_the_file_asks_again"),
    Defence("a tool's words stay in their fence", "cockpit.core.fenced_text:fence_for", _three_ticks,
            "act/own_tools/test_find_tools.py::test_a_description_cannot_leave_its_fence"),
    Defence("a worker that lost its run changes nothing", "cockpit.store.chains.remote_runs:is_current", _yes,
            "chains/remote/test_remote_messages.py::test_a_result_counts_once_and_from_who_has_the_run"),
    Defence("rows of a worker are a chain", "cockpit.store.journal.export_rows:verify_continuation", _empty,
            "chains/remote/test_remote_messages.py::test_rows_of_a_worker_follow_from_each_other"),
)  # fmt: skip
_WIDTH = 200
SAMPLE = ("secrets in other forms are masked",)
"""Those that every run of the tests takes out: a cheap one."""


def find_function(defence: Defence) -> FunctionType:
    """Return the function that is replaced to take the defence out."""
    module, _, path = defence.function.partition(":")
    target: Any = importlib.import_module(module)
    for name in path.split("."):
        target = inspect.getattr_static(target, name)
    target = inspect.unwrap(target.fget if isinstance(target, property) else target)
    assert isinstance(target, FunctionType), f"{defence.function} is not a function"
    return target


def take_out(defence: Defence) -> None:
    """Replace the code of the defence's function in this process."""
    target = find_function(defence)
    assert isinstance(defence.without, FunctionType)
    assert len(target.__code__.co_freevars) == len(defence.without.__code__.co_freevars)
    target.__code__ = defence.without.__code__
    target.__defaults__ = target.__kwdefaults__ = None


def fails_without(defence: Defence) -> tuple[bool, str]:
    """Whether a test of the defence fails in a process without it, and what the tests printed."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        pid = os.fork()
        if pid == 0:
            code = 99
            try:
                os.dup2(output.fileno(), 1)
                os.dup2(output.fileno(), 2)
                # In place of what captures the output of a test that plays this.
                sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
                os.environ["COLUMNS"] = str(_WIDTH)  # how the test failed is told in one line
                take_out(defence)
                words = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--no-header"]
                code = int(pytest.main([*words, str(TESTS / defence.tests)]))
            finally:
                sys.stdout.flush()
                os._exit(code)
        _, status = os.waitpid(pid, 0)
        output.seek(0)
        text = output.read()
    failed = os.waitstatus_to_exitcode(status) == int(pytest.ExitCode.TESTS_FAILED)
    return failed and "\nFAILED " in text, text


def main(names: list[str]) -> int:
    """Take out the named defences, or all; the number of those that no test missed."""
    os.chdir(TESTS.parent)
    unknown = set(names) - {defence.name for defence in DEFENCES}
    if unknown:
        sys.exit(f"There is no defence {', '.join(sorted(unknown))}.")
    missed = 0
    for defence in DEFENCES:
        if names and defence.name not in names:
            continue
        failed, text = fails_without(defence)
        missed += not failed
        print(
            f"{'a test fails' if failed else 'NO TEST FAILS':14} {defence.name}: {defence.tests}",
            flush=True,
        )
        for line in text.splitlines():
            if line.startswith("FAILED "):
                print(f"    {line.removeprefix('FAILED ')[:_WIDTH]}", flush=True)
        if not failed:
            print("\n".join(text.splitlines()[-15:]), flush=True)
    return missed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) > 0)
