"""The queue between machines: two streams of NATS JetStream, requests, and messages of any size.

``runs`` holds the runs that wait or are with a worker, ``back`` what workers send. A message is in a stream
until its receiver has stored what it says. Specified in ``docs/reference/remote-workers.md``.
"""

from __future__ import annotations

import asyncio
import dataclasses
import re
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, field

from cockpit.chains.remote.cancel_surely import end_coroutines
from cockpit.chains.remote.message_types import (
    KINDS,
    BackMessage,
    MessageEarly,
    MessageInvalid,
    RunMessage,
    decode,
    encode,
)
from cockpit.chains.remote.scale_settings import ScaleSettings
from cockpit.core.errors import CockpitError

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.js import JetStreamContext
    from nats.js.api import StreamConfig

PART_BYTES = 512 * 1024
"""Bytes of one message; what is longer goes in several."""
MOST_BYTES = 256 * 1024 * 1024
"""Bytes of what a worker sends at once, unpacked."""
MOST_RUN_BYTES = 64 * 1024 * 1024
"""Bytes of a run, unpacked."""
MOST_PARTS = 512
MOST_WAITING = 512
"""Messages whose parts are awaited at the same time."""
MOST_WAITING_BYTES = 2 * MOST_BYTES
MOST_TRIES = 10
"""How often parts are given out again, each time after a lease, while others of their message are missing."""
REQUEST_S = 5.0
"""Seconds that an answer of the other side may take."""
_OWNER = "cockpit project "
_WORKERS, _COORDINATOR = "workers", "coordinator"
_CONNECT_S = 5
_RECONNECT_S = 1
_LEAST_PING_S = 5.0
_BREATH_S = 0.05
_AGAIN_S = 1
_QUEUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_IN_FLIGHT = 100_000


class QueueUnreachable(CockpitError):
    """The NATS server cannot be reached, or refused."""

    code = "queue"


class QueueTaken(CockpitError):
    """The queue belongs to another project."""

    code = "queue"


class RunTooLarge(CockpitError):
    """A task is longer than what one message carries, with all that it depends on."""

    code = "run"


class Subjects(Struct, frozen=True):
    """The names of a queue at the server."""

    queue: str

    @property
    def runs_stream(self) -> str:
        return f"cockpit-{self.queue}-runs"

    @property
    def back_stream(self) -> str:
        return f"cockpit-{self.queue}-back"

    def run(self, task_id: str, run: int) -> str:
        """Where a run waits; alone there, so that one can see whether it does."""
        return f"cockpit.{self.queue}.runs.{task_id}.{run}"

    def back(self, task_id: str, kind: str) -> str:
        return f"cockpit.{self.queue}.back.{task_id}.{kind}"

    @property
    def claim(self) -> str:
        return f"cockpit.{self.queue}.claim"

    def decide(self, task_id: str, run: int, fence: int) -> str:
        """Where the worker that has the run takes decisions."""
        return f"cockpit.{self.queue}.decide.{task_id}.{run}.{fence}"


def check_queue_name(name: str) -> str:
    """Return the name of a queue. Raises :class:`MessageInvalid` for one that is none."""
    if not _QUEUE.fullmatch(name):
        raise MessageInvalid(
            f"{name[:80]!r} is not a name of a queue: use letters, digits, - and _, at most 64."
        )
    return name


class MessageQueue(Struct):
    """A connection to the server, with the streams of one queue."""

    client: Client
    stream: JetStreamContext
    subjects: Subjects
    lease_s: float
    _numbers: int = field(default=0)

    async def prepare(self, owner: str = "") -> None:
        """Create the streams and their consumers where they are missing; lease times follow the settings.

        A coordinator names the ``owner``: its project. Raises :class:`QueueTaken` where the queue is that of
        another one, whose runs and results it would take for its own.
        """
        from nats.js.api import AckPolicy, ConsumerConfig, RetentionPolicy, StreamConfig

        names = self.subjects
        places = ((names.runs_stream, "runs", _WORKERS), (names.back_stream, "back", _COORDINATOR))
        for stream, word, consumer in places:
            config = StreamConfig(
                name=stream,
                subjects=[f"cockpit.{names.queue}.{word}.>"],
                retention=RetentionPolicy.WORK_QUEUE,
            )
            reading = ConsumerConfig(
                durable_name=consumer,
                ack_policy=AckPolicy.EXPLICIT,
                ack_wait=self.lease_s,
                max_deliver=-1,
                max_ack_pending=_IN_FLIGHT,
            )
            await self._ensure_stream(config, owner)
            await _ask(partial(self.stream.add_consumer, stream, reading))

    async def _ensure_stream(self, config: StreamConfig, owner: str) -> None:
        """Create a stream or find it; without an owner it gets this one."""
        from nats.js.errors import NotFoundError

        look = partial(self.stream.stream_info, str(config.name))
        try:
            held = await _ask(look)
        except NotFoundError:
            try:
                held = await _ask(partial(self.stream.add_stream, config))
            except QueueUnreachable:  # another process was first, or the look fails as well
                held = await _ask(look)
        if owner and not held.config.description:
            owned = dataclasses.replace(held.config, description=f"{_OWNER}{owner}")
            await _ask(partial(self.stream.update_stream, owned))
            held = await _ask(look)  # of two at the same time the later one stays
        if owner and held.config.description != f"{_OWNER}{owner}":
            raise QueueTaken(
                f"The queue {self.subjects.queue} belongs to another project. Give this one a queue of its"
                " own: in [scale] server, behind the host. Where that project is gone, delete the streams"
                f" {self.subjects.runs_stream} and {self.subjects.back_stream} at the server."
            )

    async def send_run(self, subject: str, run: RunMessage) -> None:
        """Put a run into the queue; once it is back the server has it on its disk.

        Raises :class:`RunTooLarge`.
        """
        data = await asyncio.to_thread(zlib.compress, encode(run), 6)
        if len(data) > min(PART_BYTES, self.client.max_payload):
            raise RunTooLarge(
                f"{run.task_id} has {len(data):,} bytes with what it depends on, packed; the queue takes"
                f" {PART_BYTES:,}. Shorten its description, or do it without [scale] server."
            )
        await _ask(lambda: self.stream.publish(subject, data, timeout=REQUEST_S))

    async def holds(self, stream: str, subject: str) -> int:
        """Return the number of a message that is in a stream under ``subject``; 0 for none."""
        from nats.js.errors import NotFoundError

        try:
            held = await _ask(lambda: self.stream.get_last_msg(stream, subject))
        except NotFoundError:
            return 0
        return int(held.seq or 0)

    async def list_runs(self) -> frozenset[str]:
        """Return the subjects of all runs that are in the queue or with workers."""
        names = self.subjects
        return await self._list(names.runs_stream, f"cockpit.{names.queue}.runs.>")

    async def list_results(self) -> frozenset[str]:
        """Return the subjects of all results that nobody received yet."""
        names = self.subjects
        return await self._list(names.back_stream, names.back("*", "result"))

    async def _list(self, stream: str, subjects: str) -> frozenset[str]:
        look = partial(self.stream.stream_info, stream, subjects_filter=subjects)
        return frozenset((await _ask(look)).state.subjects or ())

    async def remove(self, stream: str, number: int) -> None:
        """Delete a message; one that is gone already is not an error."""
        from nats.js.errors import Error

        try:
            await self.stream.delete_msg(stream, number)
        except Error:
            return

    async def take_runs(self) -> JetStreamContext.PullSubscription:
        """Return where runs can be fetched from; each is redelivered unless it is renewed or done."""
        bind, stream = self.stream.pull_subscribe_bind, self.subjects.runs_stream
        source: JetStreamContext.PullSubscription = await _ask(
            partial(bind, consumer=_WORKERS, stream=stream)
        )
        return source

    async def send_back(self, kind: str, message: BackMessage) -> None:
        """Send something to the coordinator; once it is back the server has it.

        Raises :class:`QueueUnreachable` while the server does not take it.
        """
        packed = await asyncio.to_thread(zlib.compress, encode(message), 1)
        count = max(1, -(-len(packed) // PART_BYTES))
        self._numbers += 1
        name = f"{message.worker}/{message.task_id}/{message.run}/{message.fence}/{kind}/{self._numbers}"
        subject = self.subjects.back(message.task_id, kind)
        for number in range(count):
            headers = {"Cockpit-Message": name, "Cockpit-Part": f"{number + 1}/{count}"}
            part = packed[number * PART_BYTES : (number + 1) * PART_BYTES]
            publish = partial(self.stream.publish, subject, part, headers=headers)
            await _ask(partial(publish, timeout=REQUEST_S))

    async def receive_back(
        self, handle: Callable[[BackMessage], Awaitable[None]], on_invalid: Callable[[str], None]
    ) -> None:
        """Hand on what workers send, for ever; a message leaves the stream once ``handle`` is back.

        One for which ``handle`` raises :class:`MessageEarly` comes again later.
        """
        waiting: dict[str, dict[int, Msg]] = {}
        source = await _ask(
            lambda: self.stream.pull_subscribe_bind(
                consumer=_COORDINATOR, stream=self.subjects.back_stream
            )
        )
        while not self.client.is_closed:
            for part in await fetch(source, 64, REQUEST_S):
                await self._receive_part(part, waiting, handle, on_invalid)

    async def _receive_part(
        self,
        part: Msg,
        waiting: dict[str, dict[int, Msg]],
        handle: Callable[[BackMessage], Awaitable[None]],
        on_invalid: Callable[[str], None],
    ) -> None:
        name, number, count = _part_of(part)
        if not name or not 0 < number <= count <= MOST_PARTS:
            on_invalid("a part of a message without its name")
            await part.ack()
            return
        parts = waiting.setdefault(name, {})
        parts[number] = part
        if len(parts) < count:
            await _throw_away_unfinished(waiting, on_invalid)
            return
        del waiting[name]
        try:
            data = [parts[each].data for each in sorted(parts)]
            message = await asyncio.to_thread(_unpack, part.subject, data)
        except MessageInvalid as error:
            on_invalid(str(error))
        else:
            try:
                await handle(message)
            except MessageEarly as error:
                if max(each.metadata.num_delivered for each in parts.values()) < MOST_TRIES:
                    for each in parts.values():
                        await each.nak(delay=self.lease_s / 2)
                    return
                on_invalid(str(error))
        for each in parts.values():
            await each.ack()

    async def settle(self, message: Msg, how: Literal["done", "again", "alive"]) -> bool:
        """Say of a run that it is over, is to be given out again, or goes on; False where it was not said.

        Without a connection nothing is said later either: a late word about an earlier delivery would count
        for the one that another worker has by then.
        """
        from nats.errors import Error

        if not self.client.is_connected:
            return False
        try:
            match how:
                case "done":
                    await message.ack_sync(timeout=REQUEST_S)
                case "again":
                    await message.nak(delay=_AGAIN_S)
                case _:
                    await message.in_progress()
        except (Error, TimeoutError, OSError):
            return False
        return True

    async def request(self, subject: str, data: bytes) -> bytes:
        """Ask the other side. Raises :class:`QueueUnreachable` where nobody answers."""
        answer = await _ask(lambda: self.client.request(subject, data, timeout=REQUEST_S))
        return bytes(answer.data)

    @asynccontextmanager
    async def answer(
        self, subject: str, handle: Callable[[bytes], Awaitable[bytes]], *, group: str = ""
    ) -> AsyncIterator[None]:
        """Answer requests at ``subject`` within the block; of a ``group`` one process answers each.

        No request waits for the answer to another one.
        """
        from nats.errors import Error

        answering: set[asyncio.Task[None]] = set()

        async def reply(message: Msg) -> None:
            try:
                data = await handle(message.data)
            except MessageInvalid:
                data = b""
            except CockpitError:
                return  # without an answer the other side asks again
            with suppress(Error):  # the connection was closed meanwhile: the other side asks again
                await message.respond(data)

        async def begin(message: Msg) -> None:
            task = asyncio.create_task(reply(message))
            answering.add(task)
            task.add_done_callback(answering.discard)

        subscription = await self.client.subscribe(subject, queue=group, cb=begin)
        try:
            yield
        finally:
            if not self.client.is_closed:
                await subscription.unsubscribe()
            await end_coroutines(answering)
            await asyncio.gather(*answering, return_exceptions=True)


@asynccontextmanager
async def open_queue(scale: ScaleSettings, *, name: str) -> AsyncIterator[MessageQueue]:
    """Connect to the server of the settings, as ``name``; the connection is made again when it is lost.

    Raises :class:`QueueUnreachable`, and ``ExtraMissing`` where nats-py is not installed.
    """
    nats = require_nats()
    from nats.errors import Error, NoServersError

    # A connection over which nothing comes is lost within a lease, not after four minutes; a busy machine
    # may need seconds to answer.
    ping_s = max(_LEAST_PING_S, scale.lease_s / 3)
    options: dict[str, Any] = {"ping_interval": ping_s, "max_outstanding_pings": 2}
    if scale.credentials:
        options["user_credentials"] = scale.credentials
    try:
        client = await nats.connect(
            scale.server,
            name=name,
            connect_timeout=_CONNECT_S,
            allow_reconnect=False,
            max_reconnect_attempts=1,  # else it tries for two minutes, silently
            reconnect_time_wait=_RECONNECT_S,
            error_cb=_ignore_lost_connection,
            **options,
        )
        await client.close()
        client = await nats.connect(
            scale.server,
            name=name,
            connect_timeout=_CONNECT_S,
            max_reconnect_attempts=-1,
            reconnect_time_wait=_RECONNECT_S,
            error_cb=_ignore_lost_connection,
            **options,
        )
    except (NoServersError, OSError, Error, TimeoutError, ValueError) as error:
        raise QueueUnreachable(
            f"The NATS server {scale.server_for_people} cannot be reached:"
            f" {error or type(error).__name__}. Start it with JetStream (nats-server -js), or correct"
            " [scale] server."
        ) from error
    try:
        subjects = Subjects(check_queue_name(scale.queue))
        yield MessageQueue(client, client.jetstream(timeout=REQUEST_S), subjects, scale.lease_s)
    finally:
        await client.close()


async def fetch(
    source: JetStreamContext.PullSubscription, most: int, timeout_s: float
) -> list[Msg]:
    """Return what is there, at most ``most`` messages; none after ``timeout_s`` or while disconnected."""
    from nats.errors import Error

    try:
        batch: list[Msg] = await source.fetch(most, timeout=timeout_s)
    except (TimeoutError, Error):
        await asyncio.sleep(_BREATH_S)  # none came, or the connection is being made again
        return []
    return batch


def require_nats() -> Any:
    """Return the package of NATS. Raises :class:`QueueUnreachable` where it is not installed."""
    try:
        import nats
    except ImportError as error:
        raise QueueUnreachable(
            "Work on other machines needs the extra `nats`: run `cockpit doctor --install nats`."
        ) from error
    return nats


async def _ask(call: Callable[[], Awaitable[Any]]) -> Any:
    """Await a call to the server. Raises :class:`QueueUnreachable`, and ``NotFoundError`` as it is."""
    from nats.errors import Error
    from nats.js.errors import NotFoundError

    try:
        return await call()
    except NotFoundError:
        raise
    except (Error, TimeoutError, OSError) as error:
        raise QueueUnreachable(
            f"The NATS server did not answer: {error or type(error).__name__}."
        ) from error


async def _ignore_lost_connection(error: Exception) -> None:
    """Calls that need the connection say so themselves; nats-py would print each loss."""
    del error


async def _throw_away_unfinished(
    waiting: dict[str, dict[int, Msg]], on_invalid: Callable[[str], None]
) -> None:
    """Throw away, oldest first, messages whose other parts do not come: their sender died, or means harm."""
    size = sum(len(part.data) for parts in waiting.values() for part in parts.values())
    for name in list(waiting):
        parts = waiting[name]
        tries = max(part.metadata.num_delivered for part in parts.values())
        if size <= MOST_WAITING_BYTES and len(waiting) <= MOST_WAITING and tries < MOST_TRIES:
            continue
        del waiting[name]
        size -= sum(len(part.data) for part in parts.values())
        on_invalid("a part of a message whose other parts did not come")
        for part in parts.values():
            await part.ack()


def _part_of(message: Msg) -> tuple[str, int, int]:
    headers = message.headers or {}
    number, _, count = headers.get("Cockpit-Part", "").partition("/")
    if not (number.isascii() and number.isdigit() and count.isascii() and count.isdigit()):
        return "", 0, 0
    return headers.get("Cockpit-Message", "")[:500], int(number), int(count)


def _unpack(subject: str, parts: list[bytes]) -> BackMessage:
    kind = KINDS.get(subject.rpartition(".")[2])
    if kind is None:
        raise MessageInvalid("A message of an unknown kind.")
    return decode(kind, _unpack_data(b"".join(parts), MOST_BYTES))


def read_run(data: bytes) -> RunMessage:
    """Read what :meth:`MessageQueue.send_run` sent. Raises :class:`MessageInvalid`."""
    return decode(RunMessage, _unpack_data(data, MOST_RUN_BYTES))


def _unpack_data(packed: bytes, most: int) -> bytes:
    unpacking = zlib.decompressobj()
    try:
        data = unpacking.decompress(packed, most)
    except zlib.error as error:
        raise MessageInvalid(f"A message cannot be unpacked: {error}.") from error
    if unpacking.unconsumed_tail:
        raise MessageInvalid("A message is larger than what is taken.")
    return data
