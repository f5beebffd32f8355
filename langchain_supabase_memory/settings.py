"""The settings: frozen values, every field with its unit.

The environment is read by the command line only, but for a variable of OpenTelemetry's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Never, Self, TypeAlias

from langchain_supabase_memory.checks import (
    boolean,
    choice,
    function,
    number,
    positive_duration,
    require_type,
    wrong_type,
)
from langchain_supabase_memory.errors import ConfigurationError
from langchain_supabase_memory.json_types import Named

if TYPE_CHECKING:
    from langchain_core.language_models import BaseLanguageModel
    from langchain_core.messages import BaseMessage

    TokenCounter: TypeAlias = Callable[[Iterable[Any]], int] | BaseLanguageModel[Any] | Literal["approximate"]
    """What LangChain takes for one: a function from messages to their tokens, a model, or `"approximate"`."""

    SummaryPrompt: TypeAlias = Callable[[str | None, str, int], Sequence[BaseMessage]]
    """A function from the previous summary, the messages as XML and the most characters to the prompt."""
else:
    TokenCounter = SummaryPrompt = Annotated[Any, Named]


class Inherited(Enum):
    """What an argument is that was not given, where `None` says something else."""

    INHERITED = "the memory's"


INHERITED: Final = Inherited.INHERITED
"""The memory's own."""
MODES: Final = ("inline", "background")
"""Before the answer, or never there."""


@dataclass(frozen=True)
class RetryPolicy:
    """How a call is repeated when the server cannot be reached or asks to come back later.

    Every operation is idempotent (messages are stored by id), so every operation is repeated: after `wait_seconds`,
    then twice that, and so on, each with jitter, until `attempts` or `deadline_seconds` is used up.

    Attributes:
        attempts: The most tries of one call, the first included; 1 turns repeating off.
        deadline_seconds: No further try is begun this long after the first, in seconds.
        wait_seconds: The longest wait before the second try, in seconds; it doubles from try to try.
        max_wait_seconds: The longest wait between two tries, in seconds.
    """

    attempts: int = 4
    deadline_seconds: float = 20.0
    wait_seconds: float = 0.2
    max_wait_seconds: float = 3.0

    def __post_init__(self) -> None:
        number("attempts", self.attempts, integer=True, optional=False, example=4)
        for name in ("deadline_seconds", "wait_seconds", "max_wait_seconds"):
            number(name, getattr(self, name), above=False, optional=False, example=3)


DEFAULT_RETRY_POLICY = RetryPolicy()
"""Up to four tries within twenty seconds."""

NO_RETRY = RetryPolicy(attempts=1)
"""One try, then the error."""


@dataclass(frozen=True, kw_only=True)
class ContextBudget:
    """The most that a context pack may hold: in tokens or in characters, and on wish in messages too.

    Attributes:
        tokens: The most tokens, by `token_counter`.
        characters: The most characters instead, counted as the pack's own text form has them (who speaks, words, tool
            calls), an image or a file as 1,000; 12,000 if neither is given.
        max_messages: The most messages shown verbatim, beside the budget on content.
        media: The most images and files, 16 by default; `None` for no limit. The newest are shown, and what the user
            sends with the question always; older ones become their type and size. Providers refuse more than 16 to 100.
        recalled: The most of the budget that recalled chunks take: above 0, below 1; by default 0.7, and 0.8 of fewer
            than 4,000 characters (or 1,000 tokens). They take what the summary and the recent messages leave; only in a
            budget of fewer than 6,000 characters the share is theirs first.
        board: The share that the board may take, where the conversation has one: below 1; 0 shows none. By default a
            tenth, and up to a fifth of a budget of fewer than 4,000 characters. Where something is recalled the board's
            part is taken from that share.
        shared: The most of the budget that the boards of spaces and other agents take, where a prompt reads any: below
            1; 0 or `None` shows none.
        profile: The most characters of what is held of the user, where the memory keeps a profile; 0 or `None` shows
            nothing of it.
        token_counter: Any LangChain token counter. By default a local one that never raises and asks no network:
            `tiktoken` where its vocabulary is on disk, else an estimate that leans high, at most a tenth below o200k.
        alternate_roles: Whether messages of one role are joined, so that user and assistant alternate, as the chat
            templates of Mistral and Gemma want it. `None`: in `SupabaseMemoryMiddleware` where the model is known to
            need it, by its class or its name. Packs, nodes and histories never see the model that reads them: for such
            a model pass `True` there.

    Raises:
        ConfigurationError: A number is not positive, or both kinds of budget are given.
    """

    tokens: int | None = None
    characters: int | None = None
    max_messages: int | None = None
    media: int | None = 16
    recalled: float | None = None
    board: float | None = None
    shared: float | None = 0.1
    profile: int | None = 600
    token_counter: TokenCounter | None = field(default=None, repr=False)
    alternate_roles: bool | None = None

    def __new__(cls, *values: Never, **_: Any) -> Self:
        """Refuse a number without its unit."""
        if values:
            first: object = values[0]
            given = first if isinstance(first, (int, float)) else 4000
            raise ConfigurationError(
                "A budget needs its unit.",
                hint=f"Pass ContextBudget(tokens={given}) or ContextBudget(characters={given}).",
            )
        return super().__new__(cls)

    def __post_init__(self) -> None:
        if self.characters is not None and self.tokens is not None:
            raise ConfigurationError(
                "A budget is in tokens or in characters.", hint="Pass ContextBudget(tokens=4_000), for example."
            )
        _counts(self, "characters", "tokens", "max_messages", optional=True)
        number("media", self.media, integer=True, above=False, example=16)
        number("recalled", self.recalled, below=1, example=0.7)
        number("board", self.board, above=False, below=1, example=0.1)
        number("shared", self.shared, above=False, below=1, example=0.1)
        number("profile", self.profile, above=False, integer=True, example=600)
        if self.alternate_roles is not None:
            boolean("alternate_roles", self.alternate_roles)
        counter = self.token_counter
        # A model counts by a method of its own.
        if not hasattr(counter, "get_num_tokens_from_messages") and counter != "approximate":
            function("token_counter", counter, 'a function from messages to their tokens, a model, or "approximate"')
        if self.characters is None and self.tokens is None:
            object.__setattr__(self, "characters", DEFAULT_CHARACTERS)

    @property
    def about_characters(self) -> int:
        """The budget in characters; of one in tokens an estimate at four characters a token."""
        return self.characters if self.characters is not None else (self.tokens or 0) * 4

    @property
    def is_small(self) -> bool:
        """Whether it has fewer than 6,000 characters: providers cache no prompt that short."""
        return self.about_characters < _SMALLEST_WINDOW

    @property
    def window(self) -> int:
        """The most characters of recent messages in a pack, in characters; beyond it they are due to be summarized."""
        return int(self.about_characters * WINDOW_SHARE)

    @property
    def board_share(self) -> float:
        """The share that the board may take."""
        if self.board is not None:
            return self.board
        return 0.1 * max(1.0, min(2.0, _SMALLEST_TENTH / max(self.about_characters, 1)))

    @property
    def recalled_share(self) -> float:
        """The share that is kept for what is recalled."""
        if self.recalled is not None:
            return self.recalled
        return 0.8 if self.about_characters < _SMALL else 0.7

    @property
    def without_recalled(self) -> ContextBudget:
        """What of it is left for the summary and the recent messages where something is recalled."""
        left = 1 - self.recalled_share
        if self.tokens is not None:
            return replace(self, tokens=max(1, int(self.tokens * left)))
        return replace(self, characters=max(1, int((self.characters or 0) * left)))


WINDOW_SHARE: Final = 0.6
"""The share of a budget that recent messages may take; beyond it the older ones are summarized."""

KEPT_SHARE: Final = 0.25
"""The share of a budget that stays verbatim when the rest is summarized."""

WINDOW_STEP: Final = 1 - KEPT_SHARE / WINDOW_SHARE
"""By which share of the window its beginning moves, with a segment or without."""

FEWEST_IN_STEPS: Final = 8
"""A `max_messages` below this has no steps: one turn with tools may be longer."""

_SMALLEST_TENTH: Final = 4_000
"""A tenth of fewer characters has room for a board's frame and one short item."""

_SMALLEST_WINDOW: Final = 6_000
"""A budget of fewer characters has no window that steps."""

_SMALL: Final = 4_000
"""A budget of fewer characters is small."""

DEFAULT_CHARACTERS = 12_000
"""The budget of a context pack in characters, where none is given."""


@dataclass(frozen=True)
class SummaryPolicy:
    """When older messages are summarized, how much is kept verbatim, how long a summary may be.

    A conversation is due as soon as one of `characters`, `tokens` and `messages` is exceeded by what is not yet
    summarized. Where none of them is given they follow from the budget: due at three quarters of what it has for
    recent messages, and half of that is kept, so that a pack holds everything that no summary covers.

    Attributes:
        characters: Due beyond so many characters.
        tokens: Due beyond so many approximate tokens.
        messages: Due beyond so many messages.
        keep_characters: About so many of the newest characters are not summarized.
        keep_messages: No more than so many of the newest messages are not summarized. Of the two the smaller part is
            kept; the newest block is always kept. With the budget's `max_messages` at least half of that many.
        max_characters: The most characters of a summary; by default a quarter of the budget, and no more than 2,000
            (about 500 tokens). It is never more than half of what the summary stands for.
        mode: `"inline"`: in this process, where a model is at hand: behind the answer while its prompt shows all that
            is due, else before it. `"background"`: a worker or a scheduled task calls `summarize_due`.
        input_characters: About the most characters of messages in one call of the model; longer ranges take several.
            After a failure the next try takes half as many, for they may have been more than the model takes.
        inline_segments: The most segments that are made before one answer; the rest waits for the next.
        timeout_seconds: How long to wait for one answer of the model, in seconds.
        attempts: The most tries of one model call, the first included.
        prompt: Makes the prompt; `prompts.summary_prompt` by default.
        min_quality: A summary that holds less of the names, numbers, dates and open questions of its source than this,
            from 0 to 1, is poor: an alert is given, and more stays verbatim. `None` turns that off. See
            `quality.quality` for the measurements behind the default.
        keep_when_poor: About so many of the newest characters are not summarized after a poor summary; by default
            half way between what is kept and when it is due.

    Raises:
        ConfigurationError: A number is not positive, or the mode is none.
    """

    characters: int | None = None
    tokens: int | None = None
    messages: int | None = None
    keep_characters: int | None = None
    keep_messages: int | None = None
    max_characters: int | None = None
    mode: Literal["inline", "background"] = "inline"
    input_characters: int = 24_000
    inline_segments: int = 8
    timeout_seconds: float = 60.0
    attempts: int = 2
    prompt: SummaryPrompt | None = field(default=None, repr=False)
    min_quality: float | None = 0.25
    keep_when_poor: int | None = None

    def __post_init__(self) -> None:
        names = ("characters", "tokens", "messages", "keep_messages", "max_characters", "keep_when_poor")
        _counts(self, *names, optional=True)
        _counts(self, "input_characters", "inline_segments", "attempts")
        number("timeout_seconds", self.timeout_seconds, optional=False, example=60)
        number("keep_characters", self.keep_characters, above=False, integer=True, example=0)
        number("min_quality", self.min_quality, example=0.25)
        choice("mode", self.mode, MODES)
        function("prompt", self.prompt, "a function like prompts.summary_prompt")

    def for_budget(self, budget: ContextBudget, *, recalls: bool = True) -> SummaryPolicy:
        """Return the policy with every open number derived from a budget.

        The prompt's beginning moves with each segment, so a large budget takes few large steps: due at 0.6 of it, and
        0.25 stays verbatim. Of a small one, mostly too small for a provider's cache, recall takes its share first.

        Args:
            budget: The budget of the packs.
            recalls: Whether packs recall; only a small budget minds.
        """
        whole = budget.about_characters
        if budget.is_small and recalls:
            whole = budget.without_recalled.about_characters
        longest = self.max_characters or max(1, min(2000, whole // 4))
        room = max(1, whole - longest)
        due, kept = (room * 3 // 4, room * 3 // 8) if budget.is_small else (budget.window, int(whole * KEPT_SHARE))
        characters, messages = self.characters, self.messages
        if characters is None and messages is None and self.tokens is None:
            characters = max(1, due)
        most = budget.max_messages
        if most is not None:
            # What is beyond max_messages is not shown, so it is summarized, whatever else makes it due.
            messages = most if messages is None else min(messages, most)
        keep_characters, keep_messages = self.keep_characters, self.keep_messages
        if keep_characters is None and keep_messages is None:
            keep_characters = kept
            if characters is not None or self.tokens is not None:
                keep_characters = min(keep_characters, (characters or (self.tokens or 0) * 4) // 2)
            keep_messages = None if messages is None else max(1, messages // 2)
        if most is not None and self.keep_messages is not None:
            keep_messages = min(self.keep_messages, most)
        elif most is not None:
            # As `memory_pending` cuts, four fifths of it stay at least: half of `max_messages`, so that the prompt's
            # beginning moves by the other half; of a small budget, or of few messages, two thirds.
            keep_messages = -(-5 * most // (6 if budget.is_small or most < FEWEST_IN_STEPS else 8))
        keep_when_poor = self.keep_when_poor
        if keep_when_poor is None and keep_characters is not None:
            keep_when_poor = max(1, (keep_characters + (characters or (self.tokens or 0) * 4 or keep_characters)) // 2)
        return replace(
            self,
            characters=characters,
            messages=messages,
            keep_characters=keep_characters,
            keep_messages=keep_messages,
            max_characters=longest,
            keep_when_poor=keep_when_poor,
        )


@dataclass(frozen=True)
class BoardPolicy:
    """When and how the board of a conversation is revised.

    Attributes:
        update_frequency: Revised when so many messages are new; 5 by default.
        characters: Revised when so many characters are new, however few the messages.
        max_tokens: The most approximate tokens of its summary.
        input_characters: About the most characters of messages in one call of the model.
        max_items: The most items that the model is shown, and that a reader gets; pinned ones, then the newest.
        timeout_seconds: How long to wait for one answer of the model, in seconds.
        attempts: The most tries of one model call, the first included.

    Raises:
        ConfigurationError: A number is not positive.
    """

    update_frequency: int = 5
    characters: int = 6_000
    max_tokens: int = 500
    input_characters: int = 24_000
    max_items: int = 200
    timeout_seconds: float = 60.0
    attempts: int = 2

    def __post_init__(self) -> None:
        _counts(self, "update_frequency", "characters", "max_tokens", "input_characters", "max_items", "attempts")
        number("timeout_seconds", self.timeout_seconds, optional=False, example=60)


@dataclass(frozen=True)
class Retention:
    """How long, or how many turns, are kept. What is beyond is removed, by the database's clock, not a client's.

    Everything may be combined; what is `None` does not matter. A read does not show what is beyond, and writes nothing.
    What is beyond is removed in the same transaction with the next message that is stored, and by `forget_expired`.

    Attributes:
        max_turns: The most complete turns; when one more is complete, the oldest goes.
        max_age: The oldest that a message may be.
        max_messages: The most messages.
        max_summary_age: The oldest that a conversation's newest summary may be; then its summaries go.

    Raises:
        ConfigurationError: A number or an age is not positive.
    """

    max_turns: int | None = None
    max_age: timedelta | None = None
    max_messages: int | None = None
    max_summary_age: timedelta | None = timedelta(days=90)

    def __post_init__(self) -> None:
        _counts(self, "max_turns", "max_messages", optional=True)
        for name in ("max_age", "max_summary_age"):
            positive_duration(name, getattr(self, name))

    def to_json(self) -> dict[str, float | None]:
        """What the SQL functions take."""
        return {
            "turns": self.max_turns,
            "messages": self.max_messages,
            "age": None if self.max_age is None else self.max_age.total_seconds(),
            "summary_age": None if self.max_summary_age is None else self.max_summary_age.total_seconds(),
        }


@dataclass(frozen=True)
class ManifestPolicy:
    """Of which prompts it is kept what stood in them, in numbers, and for how long.

    Attributes:
        share: The share of the answers whose pack leaves a manifest, from 0 to 1; which ones is drawn by their ids.
        max_age: How long one is kept, from when it was stored; `None` for as long as its messages are.

    Raises:
        ConfigurationError: The share is none, or the time is not positive.
    """

    share: float = 1.0
    max_age: timedelta | None = timedelta(days=30)

    def __post_init__(self) -> None:
        number("share", self.share, above=False, optional=False, example=0.1)
        if self.share > 1:
            raise ConfigurationError("share is more than 1.", hint="Pass share=0.1 for a tenth of the answers.")
        positive_duration("max_age", self.max_age)


@dataclass(frozen=True)
class ChunkPolicy:
    """How what was said becomes chunks, the small units that recall ranks and returns.

    Attributes:
        max_tokens: The most tokens of one chunk; a longer message becomes several, cut at sentences.
        max_episode_tokens: The most tokens of a episode, the part of the talk that chunks belong to.
        pause: How long nothing is said where one sitting ends and another begins. Neighbors across it are none.
        max_age: How long a chunk is found, from when it was indexed; by default as long as its messages are kept.
        language: The text search configuration of Postgres to use, such as `english`; by default each conversation's is
            found out from its stop words, and `simple` where none fits.
        mode: `"inline"`: in this process: before the answer what its prompt would otherwise miss, the rest behind it,
            with a summary, or with each turn where recall looks into other conversations. `"background"`: a worker or a
            scheduled task calls `index_due`.
        batch: The most messages in one transaction.
        inline_batches: The most batches that are indexed before one answer; the rest waits for the next.
        importance: Says how much a text of a kind matters, from 0 to 1; rules over names, numbers and times by default.

    Raises:
        ConfigurationError: A number or a time is not positive, or the mode or the language is none.
    """

    max_tokens: int = 256
    max_episode_tokens: int = 1_000
    pause: timedelta = timedelta(hours=4)
    max_age: timedelta | None = None
    language: str | None = None
    mode: Literal["inline", "background"] = "inline"
    batch: int = 64
    inline_batches: int = 8
    importance: Annotated[Callable[[str, Any], float] | None, Named] = field(default=None, repr=False)

    def __post_init__(self) -> None:
        _counts(self, "max_tokens", "max_episode_tokens", "batch", "inline_batches")
        positive_duration("pause", self.pause, optional=False)
        positive_duration("max_age", self.max_age)
        choice("mode", self.mode, MODES)
        language = self.language
        if language is not None and not (isinstance(language, str) and re.fullmatch(r"[a-z_]{1,40}", language)):
            raise ConfigurationError("language is no text search configuration.", hint='Pass "english", for example.')
        function("importance", self.importance, "a function of a kind and a text")


@dataclass(frozen=True)
class RecallWeights:
    """What each part of a chunk's score counts. Each part is between 0 and 1 among the chunks that are compared.

    The defaults were chosen on one half of LoCoMo, round; see docs/recall.md.

    Attributes:
        words: The words of the question, in the chunk and, less, in what was said around it (BM25).
        meaning: The chunk's own vector.
        around: The mean of the vectors of the chunk and the two before and after it; in a talk of long messages the
            vector of the message's first chunk.
        speaker: Whether the question names who speaks.
        date: Whether the question names the date.
        kind: Whether a time was asked for and the chunk says one, or a number.
        question: Whether the chunk is itself a question: seldom what is looked for.
        importance: The chunk's importance.
        recency: How late it was said, among the chunks that are compared.
        beside: Of a question whose words were asked for and a short answer right behind it, what the lesser has of the
            better's score beyond its own: 1 brings both along with either, 0 neither.
        reply: Whether an assistant said it that has no name, or whose messages are long: seldom what is looked for. In
            a talk of short messages a quarter of it counts. Where a question asks for what the assistant said, it
            counts only above zero.
    """

    words: float = 0.5
    meaning: float = 0.3
    around: float = 0.4
    speaker: float = 0.3
    date: float = 0.4
    kind: float = 0.2
    question: float = -0.1
    importance: float = 0.05
    recency: float = 0.02
    beside: float = 1.0
    reply: float = -0.4

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            number(name, getattr(self, name), minimum=-1000, above=False, optional=False, example=0.3)


@dataclass(frozen=True)
class BreakerPolicy:
    """When calls to a database that is away are no longer tried, and for how long.

    Attributes:
        failures: So many failures in a row open the circuit.
        wait_seconds: How long it stays open first, in seconds, give or take a quarter; it doubles from try to try.
        max_wait_seconds: The longest that it stays open, in seconds.

    Raises:
        ConfigurationError: A number is not positive.
    """

    failures: int = 3
    wait_seconds: float = 1.0
    max_wait_seconds: float = 30.0

    def __post_init__(self) -> None:
        _counts(self, "failures")
        for name in ("wait_seconds", "max_wait_seconds"):
            number(name, getattr(self, name), optional=False, example=1)


def _counts(settings: object, *names: str, optional: bool = False) -> None:
    for name in names:
        number(name, getattr(settings, name), integer=True, optional=optional)


DEFAULT_BUDGET = ContextBudget()
"""12,000 characters."""

DEFAULT_POLICY = SummaryPolicy()
"""Inline, with everything derived from the budget."""

DEFAULT_BOARD = BoardPolicy()
"""Every five messages, with a summary of at most 500 tokens."""

DEFAULT_CHUNKS = ChunkPolicy()
"""Chunks of 256 tokens, found as long as their messages are kept, indexed before an answer that would miss them."""

DEFAULT_MANIFESTS = ManifestPolicy()
"""Of every pack, for 30 days."""

DEFAULT_WEIGHTS = RecallWeights()
"""What the measurements recommend."""

DEFAULT_BREAKER = BreakerPolicy()
"""Opens after three failures, for one second at first."""


_EXAMPLES: Final[dict[str, tuple[type, str]]] = {
    "budget": (ContextBudget, "budget=ContextBudget(tokens=4_000) or ContextBudget(characters=12_000)"),
    "policy": (SummaryPolicy, "policy=SummaryPolicy(messages=20), for example; boards have board_policy"),
    "board_policy": (BoardPolicy, "board_policy=BoardPolicy(update_frequency=5), for example"),
    "chunking": (ChunkPolicy, "chunking=ChunkPolicy(max_tokens=256), for example"),
    "retention": (Retention, "retention=Retention(max_age=timedelta(days=30)) or Retention(max_turns=50)"),
    "manifests": (ManifestPolicy, "manifests=ManifestPolicy(share=0.1), for example"),
    "breaker": (BreakerPolicy, "breaker=BreakerPolicy(failures=3), for example"),
    "retry": (RetryPolicy, "retry=RetryPolicy(attempts=4), for example"),
}


def check_settings(optional: bool = True, /, **settings: object) -> None:
    """Refuse settings that are of another class than their name says.

    Args:
        optional: Whether `None` will do.
        settings: The settings, by their usual names: `budget`, `policy`, `board_policy`, `chunking`, `retention`,
            `manifests`, `breaker`, `retry`.

    Raises:
        ConfigurationError: One of them is none.
    """
    for name, given in settings.items():
        kind, example = _EXAMPLES[name]
        if name == "budget" and isinstance(given, (int, float)) and not isinstance(given, bool):
            hint = f"Pass ContextBudget(tokens={given}) or ContextBudget(characters={given})."
            raise wrong_type(name, "a ContextBudget", given, hint)
        if name == "retention" and isinstance(given, timedelta):
            raise wrong_type(name, "a Retention", given, f"Pass Retention(max_age=timedelta(days={given.days or 1})).")
        require_type(name, given, kind, example, optional=optional)
