"""A pooler in front of Postgres, with the rules of PgBouncer's two modes.

No PyPI or npm package includes a pooler's program. The reproduced behavior was compared with PgBouncer 1.18: a few
server connections for all clients, each lent for a session or a transaction; `DISCARD ALL` after a session, and nothing
after a transaction; unknown startup parameters are rejected.
"""

from __future__ import annotations

import asyncio
import struct
import threading
from contextlib import suppress
from random import randbytes
from typing import Literal, Self

from tests.services.postgres import Cluster

_SSL, _GSS, _VERSION_3 = 80877103, 80877104, 196608
_KNOWN = {"user", "database", "application_name", "client_encoding", "DateStyle", "TimeZone"}


class _Server:
    """A server connection of one user to one database."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.greeting = b""

    @classmethod
    async def connect(cls, port: int, user: bytes, database: bytes) -> _Server:
        server = cls(*await asyncio.open_connection("127.0.0.1", port))
        words = b"user\0" + user + b"\0database\0" + database + b"\0\0"
        server.writer.write(struct.pack("!II", len(words) + 8, _VERSION_3) + words)
        while True:
            kind, whole = await _message(server.reader)
            # Cancel requests go to the pooler, so it replaces the process number and the secret.
            server.greeting += whole[:5] + randbytes(len(whole) - 5) if kind == b"K" else whole
            if kind == b"Z":
                return server
            if kind == b"E":
                raise ConnectionError(server.greeting)

    async def discard(self) -> None:
        self.writer.write(b"Q" + struct.pack("!I", 16) + b"DISCARD ALL\0")
        while (await _message(self.reader))[0] != b"Z":
            pass


class Pooler:
    """`with Pooler(cluster, database, "session") as pooler` provides `pooler.conn_string`.

    Args:
        cluster: The server behind it.
        database: Its only database.
        mode: How long a client keeps a server connection.
        size: The number of server connections that all clients share.
    """

    def __init__(self, cluster: Cluster, database: str, mode: Literal["session", "transaction"], size: int = 1) -> None:
        self._cluster, self._database, self._mode, self._size = cluster, database, mode, size
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._idle: list[_Server] = []
        self._clients: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []  # of both sides, closed at the end

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    @property
    def conn_string(self) -> str:
        return f"postgresql://postgres:postgres@127.0.0.1:{self._port}/{self._database}"

    async def _listen(self) -> None:
        self._slots = asyncio.Semaphore(self._size)
        self._listener = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self._port = self._listener.sockets[0].getsockname()[1]

    async def _end(self) -> None:
        self._listener.close()
        for task in self._clients:
            task.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)
        for writer in self._writers:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for writer in self._writers), return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._clients.add(task)
        self._writers.append(writer)
        try:
            with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
                await self._serve(reader, writer)
        finally:
            self._clients.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            size, code = struct.unpack("!II", await reader.readexactly(8))
            rest = await reader.readexactly(size - 8)
            if code not in (_SSL, _GSS):
                break
            writer.write(b"N")
        if code != _VERSION_3:  # a cancel request, which is ignored
            return
        words = rest.split(b"\0")
        given = {name.decode(): value for name, value in zip(words[::2], words[1::2], strict=False) if name}
        unknown = sorted(set(given) - _KNOWN)
        if unknown:
            fields = b"SFATAL\0C08P01\0Munsupported startup parameter: " + unknown[0].encode() + b"\0\0"
            writer.write(b"E" + struct.pack("!I", len(fields) + 4) + fields)
            await writer.drain()
            return
        server = await self._take(given)
        writer.write(server.greeting)
        if self._mode == "transaction":
            self._give_back(server)
        await self._relay(reader, writer, given, server if self._mode == "session" else None)

    async def _relay(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        given: dict[str, bytes],
        server: _Server | None,
    ) -> None:
        """Forward the client's messages and the server's answers until the client disconnects."""
        answers: asyncio.Task[bool] | None = None
        try:
            while True:
                kind, whole = await _message(reader)
                if kind == b"X":
                    break
                if answers is not None and answers.done() and answers.result() and self._mode == "transaction":
                    server = None  # returned when its transaction ended
                if server is None:
                    server = await self._take(given)
                if answers is None or answers.done():
                    answers = asyncio.create_task(self._answer(server, writer))
                server.writer.write(whole)
        finally:
            is_idle = answers is None or (answers.done() and not answers.cancelled() and answers.result())
            if answers is not None:
                answers.cancel()
            if server is not None and not (self._mode == "transaction" and is_idle):
                if is_idle:
                    await server.discard()
                    self._give_back(server)
                else:  # in the middle of a transaction
                    server.writer.close()
                    self._slots.release()

    async def _answer(self, server: _Server, writer: asyncio.StreamWriter) -> bool:
        """Forward answers until the server is ready, and return whether no transaction is open then."""
        while True:
            kind, whole = await _message(server.reader)
            is_idle = kind == b"Z" and whole[5:6] == b"I"
            if is_idle and self._mode == "transaction":
                self._give_back(server)
            writer.write(whole)
            if kind == b"Z":
                return is_idle

    async def _take(self, given: dict[str, bytes]) -> _Server:
        await self._slots.acquire()
        if self._idle:
            return self._idle.pop()
        try:
            server = await _Server.connect(self._cluster.port, given["user"], given["database"])
        except BaseException:
            self._slots.release()
            raise
        self._writers.append(server.writer)
        return server

    def _give_back(self, server: _Server) -> None:
        self._idle.append(server)
        self._slots.release()


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Return the type and the bytes of the next message."""
    head = await reader.readexactly(5)
    return head[:1], head + await reader.readexactly(int.from_bytes(head[1:], "big") - 4)
