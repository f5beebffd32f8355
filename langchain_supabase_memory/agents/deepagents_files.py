"""`MemoryFiles`: the memory as files of a deep agent, to read and not to write.

Only this module imports `deepagents`, the extra of that name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from langchain_core.tools import ToolException

from langchain_supabase_memory.agents.memory_files import FILES, read_files
from langchain_supabase_memory.agents.run.identity import current_run
from langchain_supabase_memory.agents.tools.binding import Binding, ToolCall, run_reporting
from langchain_supabase_memory.errors import MissingDependencyError
from langchain_supabase_memory.memory.require_memory import require_memory
from langchain_supabase_memory.unpicklable import Unpicklable

try:
    from deepagents.backends import protocol, utils
except ImportError:
    raise MissingDependencyError("The memory as files of a deep agent", "deepagents") from None

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from langchain_supabase_memory.agents.run.fail_open import OnError
    from langchain_supabase_memory.memory.memory import SupabaseMemory

_READ_ONLY: Final = (
    "The memory's files can be read and not written. To remember something about the user, call the tool `remember` if "
    "there is one; else tell the user that it was not remembered. (For the application: tools.remember_tool, or "
    "memory.profile.remember.)"
)


@dataclass(frozen=True)
class _Texts:
    """What was read.

    Attributes:
        files: The texts, by the paths of their files.
        error: Why nothing could be read; without content.
    """

    files: dict[str, str] = field(default_factory=dict, repr=False)
    error: str | None = None

    def data(self) -> dict[str, protocol.FileData]:
        """Return the files as deepagents has them."""
        return {path: _data(text) for path, text in self.files.items()}


class MemoryFiles(Unpicklable, protocol.BackendProtocol):
    """A read-only backend of a deep agent with `profile.md`, `board.md` and `summary.md`.

    Put it below a route of a `CompositeBackend`. The files are of the user and the conversation of the run, as for the
    tools, so one backend serves all users. They are made when they are read: what was forgotten, opted out of, redacted
    or has expired is in none. To write, edit or delete one is an error that says how to remember something.

    Args:
        memory: The memory that stores the conversations.
        thread_id: The conversation; by default the run's.
        agent_id: The agent; by default the run's.
        time_zone: The time zone of dates; by default the run's, else the memory's.
        on_error: What happens when the memory fails: a file's error says so. By default (`"setup"`) a setup mistake is
            raised instead; see `SupabaseMemoryMiddleware`.

    Raises:
        InvalidInputError: An id is not a usable string, or there is no such time zone.
        ConfigurationError: An argument has the wrong type.
        MissingDependencyError: At the import of this module: `deepagents` is not installed.

    Example:
        ```python
        files = MemoryFiles(memory)
        backend = CompositeBackend(StateBackend(), routes={"/memories/": files})
        agent = create_deep_agent(model, backend=backend)
        ```
    """

    def __init__(
        self,
        memory: SupabaseMemory,
        *,
        thread_id: str | None = None,
        agent_id: str | None = None,
        time_zone: str | tzinfo | None = None,
        on_error: OnError = "setup",
    ) -> None:
        self._binding = Binding(
            memory=require_memory(memory),
            thread_id=thread_id,
            agent_id=agent_id,
            time_zone=time_zone,
            on_error=on_error,
        )

    def ls(self, path: str) -> protocol.LsResult:
        """List the files; in any other folder there are none. Nothing is read from the database.

        Args:
            path: A folder.
        """
        return protocol.LsResult(entries=[_info(each) for each in FILES] if _is_root(path) else [])

    async def als(self, path: str) -> protocol.LsResult:
        """The async twin of `ls`."""
        return protocol.LsResult(entries=[_info(each) for each in FILES] if _is_root(path) else [])

    def glob(self, pattern: str, path: str | None = None) -> protocol.GlobResult:
        """Find files by a pattern of their names. Nothing is read from the database.

        Args:
            pattern: Such as `*.md`.
            path: A folder; by default the one with the files.
        """
        return _matching(pattern, path)

    async def aglob(self, pattern: str, path: str | None = None) -> protocol.GlobResult:
        """The async twin of `glob`."""
        return _matching(pattern, path)

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> protocol.ReadResult:
        """Read lines of a file.

        Args:
            file_path: Its path, such as `/profile.md`.
            offset: How many lines to skip.
            limit: The maximum number of lines.
        """
        return _window(self._run([file_path]), file_path, offset, limit)

    async def aread(self, file_path: str, offset: int = 0, limit: int = 2000) -> protocol.ReadResult:
        """The async twin of `read`."""
        return _window(await self._arun([file_path]), file_path, offset, limit)

    def grep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> protocol.GrepResult:
        """Find the lines that contain a text, letter by letter.

        Args:
            pattern: The text.
            path: A folder, or a file; by default all files.
            glob: Only files whose name fits this pattern.
            max_count: The maximum number of lines.
        """
        return _lines(self._run(_searched(path)), pattern, glob, max_count)

    async def agrep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> protocol.GrepResult:
        """The async twin of `grep`."""
        return _lines(await self._arun(_searched(path)), pattern, glob, max_count)

    def download_files(self, paths: list[str]) -> list[protocol.FileDownloadResponse]:
        """Return whole files, such as those that deepagents' `MemoryMiddleware` puts into the prompt.

        Args:
            paths: Their paths.
        """
        return _downloads(self._run(paths), paths)

    async def adownload_files(self, paths: list[str]) -> list[protocol.FileDownloadResponse]:
        """The async twin of `download_files`."""
        return _downloads(await self._arun(paths), paths)

    def write(self, file_path: str, content: str) -> protocol.WriteResult:
        """Refuse to write."""
        return protocol.WriteResult(error=_READ_ONLY)

    async def awrite(self, file_path: str, content: str) -> protocol.WriteResult:
        """The async twin of `write`."""
        return protocol.WriteResult(error=_READ_ONLY)

    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> protocol.EditResult:
        """Refuse to edit."""
        return protocol.EditResult(error=_READ_ONLY)

    async def aedit(
        self, file_path: str, old_string: str, new_string: str, replace_all: bool = False
    ) -> protocol.EditResult:
        """The async twin of `edit`."""
        return protocol.EditResult(error=_READ_ONLY)

    def delete(self, file_path: str) -> protocol.DeleteResult:
        """Refuse to delete."""
        return protocol.DeleteResult(error=_READ_ONLY)

    async def adelete(self, file_path: str) -> protocol.DeleteResult:
        """The async twin of `delete`."""
        return protocol.DeleteResult(error=_READ_ONLY)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[protocol.FileUploadResponse]:
        """Refuse each file."""
        return [protocol.FileUploadResponse(path, error=protocol.PERMISSION_DENIED) for path, _ in files]

    async def aupload_files(self, files: list[tuple[str, bytes]]) -> list[protocol.FileUploadResponse]:
        """The async twin of `upload_files`."""
        return [protocol.FileUploadResponse(path, error=protocol.PERMISSION_DENIED) for path, _ in files]

    def _run(self, paths: Sequence[str]) -> _Texts:
        names = {path: name for path in paths if (name := _name(path)) is not None}
        services = self._binding.memory._services
        try:
            with run_reporting("memory files", self._binding):
                call = ToolCall(self._binding, *current_run())
                texts = services.run(read_files(call, list(names.values())))
        except ToolException as error:
            return _Texts(error=str(error))
        return _Texts({path: texts[name] for path, name in names.items()})

    async def _arun(self, paths: Sequence[str]) -> _Texts:
        """The async twin of `_run`."""
        names = {path: name for path in paths if (name := _name(path)) is not None}
        services = self._binding.memory._services
        try:
            with run_reporting("memory files", self._binding):
                call = ToolCall(self._binding, *current_run())
                texts = await services.arun(read_files(call, list(names.values())))
        except ToolException as error:
            return _Texts(error=str(error))
        return _Texts({path: texts[name] for path, name in names.items()})


def _name(path: str) -> str | None:
    """Return the name of a file; `None` if there is no such file."""
    name = path.removeprefix("/")
    return name if name in FILES else None


def _is_root(path: str | None) -> bool:
    return not (path or "").strip("/")


def _searched(path: str | None) -> list[str]:
    """Return the paths of the files that a search looks into."""
    if _is_root(path):
        return [f"/{name}" for name in FILES]
    name = None if path is None else _name(path)
    return [] if name is None else [f"/{name}"]


def _info(name: str) -> protocol.FileInfo:
    return {"path": f"/{name}", "is_dir": False}


def _data(text: str) -> protocol.FileData:
    return {"content": text, "encoding": "utf-8"}


def _matching(pattern: str, path: str | None) -> protocol.GlobResult:
    try:
        fits = utils.compile_grep_include_glob(pattern)
    except ValueError as error:
        return protocol.GlobResult(error=str(error))
    names = [each.removeprefix("/") for each in _searched(path)]
    return protocol.GlobResult(matches=[_info(name) for name in names if fits(name)])


def _window(texts: _Texts, path: str, offset: int, limit: int) -> protocol.ReadResult:
    if texts.error is not None:
        return protocol.ReadResult(error=texts.error)
    if path not in texts.files:
        return protocol.ReadResult(error=f"There is no such file. The memory has {', '.join(FILES)}.")
    return utils.slice_read_response(_data(texts.files[path]), offset, limit)


def _lines(texts: _Texts, pattern: str, glob: str | None, max_count: int | None) -> protocol.GrepResult:
    if texts.error is not None:
        return protocol.GrepResult(error=texts.error)
    return utils.grep_matches_from_files(texts.data(), pattern, glob=glob, max_count=max_count)


def _downloads(texts: _Texts, paths: Sequence[str]) -> list[protocol.FileDownloadResponse]:
    """Return the files. One that cannot be read counts as absent, because deepagents fails a run at any other error."""
    return [
        protocol.FileDownloadResponse(path, texts.files[path].encode())
        if path in texts.files
        else protocol.FileDownloadResponse(path, error=protocol.FILE_NOT_FOUND)
        for path in paths
    ]
