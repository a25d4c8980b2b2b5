"""Traces: a session's spans at a real collector over OTLP, those of task runs in the SDK's own memory."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

from loop.scenario import finish, turn
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from cockpit.core.project_paths import locate_project
from cockpit.loop.runtime import open_runtime
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.loop.telemetry.export_spans import exported
from cockpit.loop.telemetry.fold_spans import SpanFold
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal import journal
from cockpit.store.journal.details.proposals import ActionDispatched, ActionUncertain
from cockpit.store.journal.details.tasks import TaskRunStep

SCRIPT = turn(
    "write_file", text="SECRET-OF-THE-TEXT", path="notes.md", content="SECRET-OF-THE-FILE"
) + finish('called = ["write_file"]', summary="SECRET-OF-THE-SUMMARY")


class Collector:
    """A collector of traces on the loopback."""

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}"
        self.paths: list[str] = []
        self.bodies: list[bytes] = []

    def spans(self) -> dict[str, Span]:
        requests = [ExportTraceServiceRequest.FromString(body) for body in self.bodies]
        return {
            span.name: span
            for request in requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        }


@contextmanager
def collecting() -> Iterator[Collector]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            collector.paths.append(self.path)
            collector.bodies.append(body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        collector = Collector(server.server_port)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()


def attributes(span: Span) -> dict[str, object]:
    return {
        each.key: getattr(each.value, str(each.value.WhichOneof("value")))
        for each in span.attributes
    }


async def test_a_session_is_one_trace_at_the_collector(project, tmp_path):
    (tmp_path / "scenario.toml").write_text(SCRIPT, encoding="utf-8")
    model = f"script:{tmp_path / 'scenario.toml'}"
    with collecting() as collector:
        settings = RuntimeSettings(policy="all", otlp_endpoint=collector.address)
        async with open_runtime(locate_project(project), settings) as runtime:
            session = await runtime.start(
                "write notes", model=model, interactive=False, task_type="implement"
            )
            await runtime.run(session)
        again = RuntimeSettings(otlp_endpoint=collector.address)
        async with open_runtime(locate_project(project), again):
            pass  # what was exported is not exported again
    spans = collector.spans()
    assert set(collector.paths) == {"/v1/traces"}
    assert sum(body.count(b"invoke_agent cockpit") for body in collector.bodies) == 1
    agent, wave = spans["invoke_agent cockpit"], spans["wave 1"]
    tool = spans["execute_tool write_file"]
    chat = spans["chat script"]
    assert {span.trace_id for span in spans.values()} == {agent.trace_id}
    assert (agent.parent_span_id, wave.parent_span_id) == (b"", agent.span_id)
    waves = {span.span_id for name, span in spans.items() if name.startswith("wave ")}
    assert tool.parent_span_id == wave.span_id and chat.parent_span_id in waves
    assert agent.start_time_unix_nano <= wave.start_time_unix_nano <= tool.start_time_unix_nano
    assert tool.end_time_unix_nano <= wave.end_time_unix_nano <= agent.end_time_unix_nano
    assert [event.name for event in wave.events] == [
        "observing",
        "orienting",
        "deciding",
        "acting",
        "learning",
    ]
    assert chat.kind == Span.SPAN_KIND_CLIENT
    assert attributes(chat).keys() >= {
        "gen_ai.operation.name",
        "gen_ai.provider.name",
        "gen_ai.request.model",
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.output_tokens",
    }
    assert attributes(agent)["gen_ai.conversation.id"] == session
    assert attributes(agent)["cockpit.session.status"] == "done"
    assert attributes(tool)["gen_ai.tool.name"] == "write_file"
    assert not any(b"SECRET" in body for body in collector.bodies)
    assert any(b"service.name" in body for body in collector.bodies)


async def test_spans_of_task_runs_and_failures_in_memory(tmp_path):
    memory = InMemorySpanExporter()
    action = {"action_id": "a-1", "type": "run", "title": "rm"}
    run = {"task_id": "T-1", "run": 2, "chain_id": "ch-1", "ordinal": 1, "attempt": 1}
    run |= {"session_id": "", "summary": ""}

    def begin(tx: Tx) -> None:
        tx.journal(TaskRunStep(position=1, step="implement", outcome="", **run))
        tx.journal(ActionDispatched(attempt=1, **action))

    def end(tx: Tx) -> None:
        tx.journal(ActionUncertain(message="the process was killed", **action))
        tx.journal(TaskRunStep(position=2, step="blocked", outcome="BLOCKED", **run))

    with Store.open(tmp_path / "cockpit.db") as store:
        await store.write(begin)  # before the export begins: it looks back
        async with exported(store, "memory", exporter=memory):
            await store.write(end)
        rows = store.read_now(journal.rows)
    spans = {span.name: span for span in memory.get_finished_spans()}
    assert set(spans) == {"task_run T-1", "execute_tool run"}
    for span in spans.values():
        assert span.status.status_code.value == Status.STATUS_CODE_ERROR
        assert span.attributes["error.type"]
        assert span.start_time < span.end_time
    # The same rows give the same spans, whoever reads them.
    assert SpanFold().take(rows) == SpanFold().take(rows)
