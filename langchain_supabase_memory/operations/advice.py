"""Advice on settings: rules over usage by day, and over the newest packs as they would have been. No model is asked.

Each finding has its evidence in numbers. What a rule cannot know from them it leaves out.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import mean
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from langchain_supabase_memory.effects import INLINE_LIMIT, Flow, call, offload
from langchain_supabase_memory.language.shared_words import KEPT, shared_terms
from langchain_supabase_memory.operations.manifests.manifest import Manifest, manifest
from langchain_supabase_memory.operations.usage import UsageDay, by_day
from langchain_supabase_memory.settings import DEFAULT_POLICY, KEPT_SHARE, WINDOW_SHARE, WINDOW_STEP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Rule: TypeAlias = Literal[
    "budget", "history", "summaries", "boards", "beginning", "vectors", "chunks", "recall", "failures", "room"
]
"""What a finding is about: a larger `budget` than needed, a `history` that is smaller than the packs, `summaries` that
no prompt shows, `boards` revised more than shown, a `beginning` of prompts that moves, `vectors` that find nothing,
`chunks` that no prompt shows, `recall` that finds nothing, `failures`, or too little `room` for summaries and boards.
"""

RULES: Final[tuple[Rule, ...]] = get_args(Rule)

PACKS: Final = 200
"""How many of the newest packs are looked at."""

FEWEST: Final = 20
"""Nothing is said of fewer packs, or calls."""

_UNREAD_SEGMENT_DAYS: Final = 30
_UNREAD_CHUNK_DAYS: Final = 90
_FEWEST_SEGMENTS: Final = 10
_FEWEST_CHUNKS: Final = 100
_MOST: Final = 0.8
"""The share of packs, chunks or segments from which a rule speaks of most of them."""
_SMALLER: Final = (0.5, 0.6, 0.7, 0.75, 0.8)
"""The budgets that are tried in place of the present one, as shares of it."""
_WORTH_A_CHANGE: Final = 0.15
"""The least saving; of less a replay says too little."""
_LEAST_BUDGET: Final = 6_000
"""In characters; below it packs are chosen in another way, so nothing can be said of them."""
_CUT: Final = 0.97
"""The share of a budget that a pack has where it is filled, and what is oldest in it is cut."""
_FRAME: Final = 10
"""The characters of the budget that a message takes beside its own, about: who speaks."""
_OF_THE_BUDGET: Final = frozenset({"summary", "board", "shared", "profile"})
"""Parts that take a share of the budget."""
_SUMMARY_SECONDS: Final = DEFAULT_POLICY.timeout_seconds
_CHARACTERS: Final = 4
"""The characters of a token, about."""
_FEW_RECALLED: Final = 0.2
"""The share of a budget for recalled chunks where the whole history would be smaller than the packs."""
_SEARCHED: Final[Mapping[str, str]] = {
    "conversation": "their conversation",
    "agent": "the conversations with their agent",
    "user": "all of the user's conversations",
}
"""The scopes of recall, in words."""
_FAILED: Final[Mapping[str, tuple[str, str]]] = {
    "summary": ("summary", f"config=MemoryConfig(policy=SummaryPolicy(timeout_seconds={2 * _SUMMARY_SECONDS:.0f}))"),
    "recall": ("vectors of recall", "embeddings=None"),
    "rerank": ("reranker", "config=MemoryConfig(reranker=None)"),
}
"""What fails, in words, and the setting that goes on without it or gives it more time."""
_PAGE: Final = 1000
_THREADS: Final = 20
"""Of how many conversations texts are read."""


@dataclass(frozen=True)
class Advice:
    """A finding, and the setting to change.

    Attributes:
        rule: What it is about: see `Rule`.
        finding: What is found, as a sentence.
        evidence: The numbers behind it.
        setting: The argument to pass to the memory's constructor, as code: `budget=ContextBudget(characters=9_000)`.
        saving: What share of the packs' tokens it would have saved; `None` if it saves something else.
        packs: How many packs were looked at.
    """

    rule: Rule
    finding: str
    evidence: Mapping[str, float]
    setting: str
    saving: float | None = None
    packs: int = 0

    def __str__(self) -> str:
        """Return the finding and the setting in one line."""
        return f"{self.finding} {self.setting}"


@dataclass(frozen=True)
class SentPack:
    """A pack that was sent, with the words that the replay compares.

    Attributes:
        thread: The conversation: its agent and thread.
        manifest: What was in it.
        answer: The answer's words; empty if they are not read.
        recent: The characters and words of each recent message, the oldest first, and of the question, without its
            characters.
        turns: The characters of the messages of each of the newest turns that the budget would hold, the oldest first:
            from one message of the user to the next.
    """

    thread: tuple[str, str]
    manifest: Manifest
    answer: str = field(default="", repr=False)
    recent: tuple[tuple[int, str], ...] = field(default=(), repr=False)
    turns: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class AdviceEvidence:
    """All that the rules read.

    Attributes:
        days: The usage of the last 30 days.
        packs: The newest packs, the oldest first.
        segments: How many segments older than 30 days there are, and how many no prompt has shown.
        chunks: How many chunks older than 90 days there are, how many no prompt has shown, and the bytes of these.
    """

    days: Sequence[UsageDay] = ()
    packs: Sequence[SentPack] = ()
    segments: tuple[int, int] = (0, 0)
    chunks: tuple[int, int, int] = (0, 0, 0)

    def total(self, name: str) -> int:
        """Return the sum of a number over the days."""
        return sum(int(getattr(day, name)) for day in self.days)


def advice(owner: str | None, *, agent_id: str | None = None) -> Flow[list[Advice]]:
    """Say which settings would have saved tokens or found more, by the last 30 days and the newest 200 packs.

    Each finding has its numbers. A smaller budget is advised only where the replay of the packs shows that no word
    of an answer would have been left out of its prompt. Nothing is changed, and no model is asked.

    Args:
        owner: The owner; `None` means the access token's subject.
        agent_id: Only conversations with this agent.

    Returns:
        The findings, in the order of `Rule`; none if nothing is to be changed, or if too little is known.
    """
    days = yield from by_day(owner, agent_id=agent_id)
    asked = {"p_agent_id": agent_id, "p_user_id": owner}
    rows = yield from call("memory_recent_packs", {"p_limit": PACKS, **asked})
    packs = yield from with_texts(owner, rows)
    segments = yield from call("memory_unread", {"p_days": _UNREAD_SEGMENT_DAYS, **asked})
    chunks = yield from call("memory_unread", {"p_days": _UNREAD_CHUNK_DAYS, **asked})
    evidence = AdviceEvidence(
        days,
        packs,
        (segments["segments"], segments["segments_unread"]),
        (chunks["chunks"], chunks["chunks_unread"], chunks["bytes_unread"]),
    )
    size = INLINE_LIMIT if any(each.recent for each in packs) else 0
    return (yield from offload(partial(advise, evidence), size, warm_caches=KEPT))


def advise(evidence: AdviceEvidence) -> list[Advice]:
    """Return what the evidence says, in the order of `Rule`. Pure.

    Args:
        evidence: The numbers, and the words of the packs' messages.
    """
    rules: tuple[Callable[[AdviceEvidence], Advice | None], ...] = (
        _budget, _history, _summaries, _boards, _beginning, _vectors, _chunks, _recall, _failures, _room,
    )  # fmt: skip
    return [each for rule in rules if (each := rule(evidence)) is not None]


def replayed(packs: Sequence[SentPack], share: float) -> float:
    """Return what share of the packs' tokens a smaller budget would have sent.

    Args:
        packs: The packs, with one budget.
        share: The smaller budget as a share of the present one.
    """
    sent = sum(each.manifest.tokens for each in packs)
    # Where all was shown there was nothing to recall; a smaller pack would recall as much as others do.
    beyond = [_recalled(_sizes(each.manifest)) for each in packs if not _shows_all(each.manifest)]
    usual = mean(beyond) if beyond else 0.0
    return sum(_refitted(each, share, usual) for each in packs) / sent if sent else 1.0


def _sizes(pack: Manifest) -> Mapping[str, int]:
    """Return the characters of each part of a pack; 0 of one that it lacks."""
    sizes: dict[str, int] = defaultdict(int)
    for part in pack.parts:
        sizes[part.name] += part.characters
    return sizes


def _recalled(sizes: Mapping[str, int]) -> int:
    return sizes["recalled"] + sizes["reference"]


def _shows_all(pack: Manifest) -> bool:
    return not {"summary", "note"} & {part.name for part in pack.parts}


def _refitted(pack: SentPack, share: float, usual: float) -> float:
    """Return the tokens of a pack with a smaller budget, about: fitted again, by the sizes of its messages.

    Args:
        pack: The pack.
        share: The smaller budget as a share of the present one.
        usual: The characters that packs recall where something is beyond them.
    """
    sent = pack.manifest
    sizes = _sizes(sent)
    room = share * _filled(sent)
    if _shows_all(sent) and sent.full_characters + _FRAME * len(pack.recent) <= room:
        return float(sent.tokens)
    fixed = sizes["current"] + sizes["note"]
    recent = _recent_again(pack.turns, sent.full_characters - sizes["current"], room, room - fixed)
    if recent is None:  # filled with what is newest, cut to fit
        characters = min(float(sent.full_characters), _CUT * room)
    else:
        others = share * sum(size for name, size in sizes.items() if name in _OF_THE_BUDGET)
        left = max(0.0, room - fixed - recent - others)
        recalled = usual if _shows_all(sent) else _recalled(sizes)
        characters = fixed + recent + others + min(share * recalled, left)
    # It may be more than was sent: where a larger window has just moved, a smaller one may not have.
    return sent.tokens * min(characters, room) / sent.characters if sent.characters else 0.0


def _recent_again(turns: Sequence[Sequence[int]], total: int, room: float, left: float) -> float | None:
    """Return the characters of recent messages that begin at a step of a smaller window, as a pack's do.

    Args:
        turns: The characters of the messages of the newest turns before the question, the oldest first.
        total: The characters of all messages before the question.
        room: The smaller budget in characters.
        left: What of it is left for recent messages, in characters.

    Returns:
        The characters; `None` if a message is longer than a step, so that the newest are cut to fit, or none is known.
    """
    window = room * WINDOW_SHARE
    step = window * WINDOW_STEP
    boundary = step * math.ceil(max(0.0, total - window) / step)
    least = min(window - step, total) / 2
    while boundary < total:
        held = _since(turns, total, boundary)
        if not held or held < least:
            return None
        if held <= left:
            return held
        boundary += step
    last = boundary - step
    halves = (_since(turns, total, last + (total - last) * part / 4) for part in (2, 3))
    return next((held for held in halves if 0 < held <= left), None)


def _since(turns: Sequence[Sequence[int]], total: int, boundary: float) -> float:
    """Return the characters from the first turn that begins at a boundary or later on; if none does, message."""
    sizes = [sum(turn) for turn in turns]
    place, held = float(total - sum(sizes)), float(sum(sizes))
    for turn, size in zip(turns, sizes, strict=True):
        if place >= boundary:
            return held
        place, held = place + size, held - size
        if not held:
            left = float(size)
            for each in turn:
                if total - left >= boundary:
                    return left
                left -= each
    return 0.0


def _filled(pack: Manifest) -> float:
    """Return how many characters a pack's budget holds."""
    return float(pack.budget if pack.unit == "characters" else pack.budget * _CHARACTERS)


def _budget(evidence: AdviceEvidence) -> Advice | None:
    last = evidence.packs[-1].manifest if evidence.packs else None
    packs = [
        each for each in evidence.packs
        if last is not None and each.answer and (each.manifest.budget, each.manifest.unit) == (last.budget, last.unit)
    ]  # fmt: skip
    if last is None or len(packs) < FEWEST:
        return None
    said = [(each.recent, shared_terms(each.answer, [words for _, words in each.recent])) for each in packs]
    for share in _SMALLER:
        if share * _filled(last) < _LEAST_BUDGET or any(_loses(*each, share) for each in said):
            continue
        saving = 1 - replayed(packs, share)
        if saving < _WORTH_A_CHANGE:
            continue
        budget = int(share * last.budget)
        return Advice(
            "budget",
            f"With a budget of {budget:,} {last.unit} in place of {last.budget:,}, {len(packs)} packs would have had "
            f"{saving:.0%} fewer tokens, and no word of an answer less.",
            {"budget": last.budget, "packs": len(packs), "lost": 0, "saving": round(saving, 3)},
            f"budget=ContextBudget({last.unit}={budget:_})",
            saving,
            len(packs),
        )
    return None


def _loses(recent: Sequence[tuple[int, str]], terms: Sequence[frozenset[str]], share: float) -> bool:
    """Return whether an answer has words that a smaller budget would have left out of its prompt.

    Args:
        recent: The characters and words of each recent message, the oldest first.
        terms: Which of the answer's words each of them has.
        share: The smaller budget as a share of the present one.
    """
    room = share * sum(size for size, _ in recent)
    first = len(recent)  # the first message that stays
    while first and (room := room - recent[first - 1][0]) >= 0:
        first -= 1
    kept = frozenset[str]().union(*terms[first:])
    return any(each - kept for each in terms[:first])


def _history(evidence: AdviceEvidence) -> Advice | None:
    packs, wider = evidence.total("packs"), evidence.total("wider")
    if packs < FEWEST or wider <= _MOST * packs:
        return None
    sent, whole = evidence.total("pack_tokens"), evidence.total("whole_tokens")
    saving = max(0.0, 1 - whole / sent) if sent else 0.0
    last = evidence.packs[-1].manifest if evidence.packs else None
    size = f"{last.unit}={last.budget:_}, " if last is not None else ""
    return Advice(
        "history",
        f"Of {packs:,} packs {wider:,} were larger than the whole history.",
        {"packs": packs, "wider": wider, "pack_tokens": sent, "whole_tokens": whole},
        f"budget=ContextBudget({size}recalled={_FEW_RECALLED})",
        saving,
        packs,
    )


def _summaries(evidence: AdviceEvidence) -> Advice | None:
    there, unread = evidence.segments
    if there < _FEWEST_SEGMENTS or unread <= _MOST * there:
        return None
    return Advice(
        "summaries",
        f"Of {there:,} summaries older than {_UNREAD_SEGMENT_DAYS} days, no prompt has shown {unread:,}.",
        {"segments": there, "unread": unread},
        "model=None",
    )


def _boards(evidence: AdviceEvidence) -> Advice | None:
    revised, shown = evidence.total("boards"), evidence.total("boards_shown")
    if revised < FEWEST or revised <= 3 * shown:
        return None
    every = 5 * max(2, round(revised / max(shown, 1)))
    return Advice(
        "boards",
        f"Boards were revised {revised:,} times, and {shown:,} packs showed one.",
        {"revised": revised, "shown": shown},
        f"config=MemoryConfig(board_policy=BoardPolicy(update_frequency={min(every, 50)}))",
    )


def _beginning(evidence: AdviceEvidence) -> Advice | None:
    moved: list[float] = []
    kept: list[float] = []
    wasted = read = 0.0
    for earlier, pack in _pairs(evidence.packs):
        usage = pack.manifest.usage
        if usage is None or not usage.input_tokens or usage.cached_tokens is None:
            continue
        cached = usage.cached_tokens / usage.input_tokens
        read += usage.input_tokens
        if _start(earlier.manifest) != _start(pack.manifest):
            moved.append(cached)
            wasted += usage.input_tokens
        else:
            kept.append(cached)
    if len(moved) + len(kept) < FEWEST or len(moved) <= len(kept) or not kept or mean(moved) >= mean(kept) / 2:
        return None
    lost = (mean(kept) - mean(moved)) * wasted / read
    verbatim = int(_filled(evidence.packs[-1].manifest) * KEPT_SHARE / 2)  # so that a segment is made less often
    return Advice(
        "beginning",
        f"The beginning of {len(moved)} of {len(moved) + len(kept)} prompts was another than before, and a provider's "
        f"cache had {mean(moved):.0%} of them in place of {mean(kept):.0%}.",
        {"moved": len(moved), "kept": len(kept), "cached_lost": round(lost, 3)},
        f"config=MemoryConfig(policy=SummaryPolicy(keep_characters={verbatim:_}))",
    )


def _vectors(evidence: AdviceEvidence) -> Advice | None:
    embeds = evidence.total("embeds")
    recalled = [part for each in evidence.packs for part in each.manifest.parts if part.name == "recalled"]
    scored = [each for pack in evidence.packs for each in pack.manifest.passages if each.score_parts]
    by_meaning = sum(part.reason == "meaning" for part in recalled)
    only_words = sum(
        each.score_parts.get("words", 0) > 0 and each.score_parts.get("meaning", 0) <= 0 for each in scored
    )
    if embeds < _FEWEST_CHUNKS or len(recalled) < FEWEST or len(scored) < FEWEST or only_words < len(scored):
        return None
    return Advice(
        "vectors",
        f"{embeds:,} chunks were embedded, and each of {len(scored):,} passages in {len(recalled)} packs was found by "
        "its words.",
        {"embeds": embeds, "passages": len(scored), "packs_by_meaning": by_meaning},
        "embeddings=None",
    )


def _chunks(evidence: AdviceEvidence) -> Advice | None:
    there, unread, size = evidence.chunks
    if there < _FEWEST_CHUNKS or unread <= _MOST * there:
        return None
    return Advice(
        "chunks",
        f"Of {there:,} chunks older than {_UNREAD_CHUNK_DAYS} days, no prompt has shown {unread:,}, "
        f"of {size / 2**20:.1f} MiB.",
        {"chunks": there, "unread": unread, "bytes": size},
        f"config=MemoryConfig(chunking=ChunkPolicy(max_age=timedelta(days={_UNREAD_CHUNK_DAYS})))",
    )


def _recall(evidence: AdviceEvidence) -> Advice | None:
    recalls, empty = evidence.total("recalls"), evidence.total("recalls_empty")
    searched = next((each.manifest.recall for each in reversed(evidence.packs) if each.manifest.recall), "conversation")
    widest = searched == "user"
    if recalls < FEWEST or empty <= (_MOST if widest else 0.5) * recalls:
        return None
    # In one conversation a wider search finds the same, and what some of the recalls find is not worth giving up.
    if not widest and len({each.thread for each in evidence.packs}) == 1:
        return None
    return Advice(
        "recall",
        f"Of {recalls:,} recalls {empty:,} found nothing in {_SEARCHED.get(searched, 'what they searched')}.",
        {"recalls": recalls, "empty": empty},
        f"config=MemoryConfig(recall={None if widest else 'user'!r})",
    )


def _failures(evidence: AdviceEvidence) -> Advice | None:
    packs, failed = evidence.total("packs"), evidence.total("failures")
    if packs < FEWEST or failed <= packs / 20:
        return None
    parts = Counter(name for each in evidence.packs for name in each.manifest.failed if name in _FAILED)
    part = parts.most_common(1)[0][0] if parts else "summary"
    return Advice(
        "failures",
        f"Of {packs:,} packs {failed:,} lack what failed, mostly the {_FAILED[part][0]}. memory.doctor() says why.",
        {"packs": packs, "failed": failed},
        _FAILED[part][1],
    )


def _room(evidence: AdviceEvidence) -> Advice | None:
    packs = [each.manifest for each in evidence.packs]
    tight = [each for each in packs if each.items_left_out or any(why == "no_room" for _, _, why in each.omitted)]
    if len(packs) < FEWEST or len(tight) <= len(packs) / 2:
        return None
    last = packs[-1]
    return Advice(
        "room",
        f"In {len(tight)} of {len(packs)} packs items of the board, or a summary, did not fit.",
        {"packs": len(packs), "tight": len(tight)},
        f"budget=ContextBudget({last.unit}={2 * last.budget:_})",
        None,
        len(packs),
    )


def _pairs(packs: Sequence[SentPack]) -> Iterator[tuple[SentPack, SentPack]]:
    """Yield each pack with the one before it in the same conversation."""
    before: dict[tuple[str, str], SentPack] = {}
    for each in packs:
        if each.thread in before:
            yield before[each.thread], each
        before[each.thread] = each


def _start(pack: Manifest) -> tuple[object, ...]:
    beginning = pack.beginning
    return beginning.segment, beginning.first, beginning.profile


def with_texts(owner: str | None, rows: Sequence[Mapping[str, Any]]) -> Flow[list[SentPack]]:
    """Return the packs, the oldest first, with the words of their messages where these are still there.

    Args:
        owner: The owner; `None` means the access token's subject.
        rows: The packs as `memory_recent_packs` gives them, the newest first.
    """
    packs: list[SentPack] = []
    texts: dict[tuple[str, str], dict[int, tuple[int, str, bool]]] = {}
    for row in reversed(rows):
        try:
            sent = manifest(row["pack"])
        except (StopIteration, RuntimeError, IndexError, TypeError):  # it comes from another release
            continue
        thread = (row["agent_id"], row["thread_id"])
        recent = next((each for each in sent.parts if each.name == "recent"), None)
        if recent is None or recent.first is None or recent.last is None:
            packs.append(SentPack(thread, sent))
            continue
        if thread not in texts:
            newest = max(int(each["sequence"]) for each in rows if (each["agent_id"], each["thread_id"]) == thread)
            known = len(texts) < _THREADS
            texts[thread] = (yield from _texts(owner, thread, recent.first, newest)) if known else {}
        found = texts[thread]
        shown = [found[each] for each in sorted(found) if recent.first <= each <= recent.last]
        # The question is in the prompt whatever the budget is.
        asked = [(0, found[each][1]) for each in sorted(found) if recent.last < each < int(row["sequence"])]
        said = (*((size, words) for size, words, _ in shown), *asked)
        answer = found.get(int(row["sequence"]), (0, "", False))[1]
        before = [found[each] for each in sorted(found) if each <= recent.last]
        packs.append(SentPack(thread, sent, answer, said, tuple(_turns(_newest(before, _filled(sent))))))
    return packs


def _newest(messages: Sequence[tuple[int, str, bool]], room: float) -> Sequence[tuple[int, str, bool]]:
    """Return the newest messages that a budget would hold: a smaller window may begin before a larger one does."""
    first = len(messages)
    while first and (room := room - messages[first - 1][0]) >= 0:
        first -= 1
    return messages[first:]


def _turns(messages: Iterable[tuple[int, str, bool]]) -> Iterator[tuple[int, ...]]:
    """Yield the characters of each turn's messages; what is before the first message of the user is a turn, too."""
    turn: list[int] = []
    for characters, _, is_users in messages:
        if is_users and turn:
            yield tuple(turn)
            turn = []
        turn.append(characters)
    if turn:
        yield tuple(turn)


def _texts(owner: str | None, thread: tuple[str, str], first: int, last: int) -> Flow[dict[int, tuple[int, str, bool]]]:
    """Read messages: the characters and words of each, and whether it is the user's."""
    found: dict[int, tuple[int, str, bool]] = {}
    place: int = first
    while True:
        page = yield from call(
            "memory_read",
            {
                "p_thread_id": thread[1],
                "p_agent_id": thread[0],
                "p_user_id": owner,
                "p_from": place,
                "p_to": last,
                "p_limit": _PAGE,
                "p_columns": ["text", "characters", "role"],
            },
        )
        found |= {row["sequence"]: (row["characters"], row["text"], row["role"] == "user") for row in page["messages"]}
        if not page["more"] or not page["messages"]:
            return found
        place = page["messages"][-1]["sequence"] + 1
