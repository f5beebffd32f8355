"""Serves the inspector on a local address: a socket, a token, and a server that stops on a signal."""

from __future__ import annotations

import errno
import secrets
import signal
import socket
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

import uvicorn

from langchain_supabase_memory.adapters.transports.event_loop import run
from langchain_supabase_memory.errors import ConfigurationError
from langchain_supabase_memory.inspector.application import application
from langchain_supabase_memory.inspector.auth import LOCAL

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

    from langchain_supabase_memory.memory.memory import SupabaseMemory

HOST: Final = "127.0.0.1"
PORT: Final = 8765


class _InspectorServer(uvicorn.Server):
    """A server that releases its pages before it waits for their connections.

    Args:
        config: The server's configuration.
        stop: Releases every page.
    """

    def __init__(self, config: uvicorn.Config, stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._stop = stop
        self.is_interrupted = False

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop after a signal."""
        self.is_interrupted |= sig == signal.SIGINT
        self._stop()
        super().handle_exit(sig, frame)


def serve(
    memory: SupabaseMemory,
    *,
    host: str = HOST,
    port: int = PORT,
    allowed_hosts: Sequence[str] = (),
    write: bool = False,
    actor: str,
    echo: Callable[[str], None],
) -> None:
    """Serve the inspector until a signal stops it.

    Args:
        memory: The memory to inspect.
        host: The address to listen on; other machines can only reach it if you pass another host.
        port: The port; 0 for a free one.
        allowed_hosts: Additional accepted host names.
        write: Whether people may change something.
        actor: The name recorded with a change.
        echo: Called with the address, including the token, once the server listens.

    Raises:
        ConfigurationError: The address cannot be used.
        KeyboardInterrupt: Ctrl-C stopped it.
    """
    token = secrets.token_urlsafe(32)
    with _listening(host, port) as listener:
        named = HOST if host in ("", "0.0.0.0", "::") else host  # what listens everywhere has no name
        app = application(memory, write=write, actor=actor, token=token, hosts=[*LOCAL, named, *allowed_hosts])
        config = uvicorn.Config(
            app,
            access_log=False,  # addresses contain ids, and once the token
            log_config=None,
            server_header=False,
            timeout_graceful_shutdown=2,
        )
        shown = f"[{named}]" if ":" in named else named
        echo(f"http://{shown}:{listener.getsockname()[1]}/?token={token}")
        server = _InspectorServer(config, app.state.inspector.notifier.stop)
        run(server.serve(sockets=[listener]))
    if server.is_interrupted:  # if SIGINT is ignored, as in a shell's background job, nothing else raises it
        raise KeyboardInterrupt


def is_public_address(host: str) -> bool:
    """Return whether other machines can reach an address."""
    try:
        return not ip_address(host).is_loopback
    except ValueError:  # a name
        return host not in LOCAL


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens there.

    Raises:
        ConfigurationError: The address is not one of this machine's, or the port is in use.
    """
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind)
    except OSError:
        raise ConfigurationError("There is no such address.", hint="Pass --host 127.0.0.1, for example.") from None
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(128)
    except OSError as error:
        made.close()
        if error.errno == errno.EADDRINUSE:
            raise ConfigurationError(
                f"The port {port} is in use.", hint="Pass another port, or --port 0 for a free one."
            ) from None
        raise ConfigurationError(
            "The inspector cannot listen on this address.", hint="Pass --host 127.0.0.1 and a port above 1023."
        ) from None
    return made
