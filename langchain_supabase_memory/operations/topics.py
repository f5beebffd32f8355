"""The flows over topics: find one for what was indexed, find them anew, list them, and what a person makes of them.

No model is asked. An episode is compared by the mean of its chunks' vectors; without an embedder, by its words.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.checks import as_texts, as_uuid, boolean
from langchain_supabase_memory.effects import INLINE_LIMIT, Flow, call, offload
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.language.messages.redaction.payload import redact_value
from langchain_supabase_memory.language.messages.sanitizer import clean
from langchain_supabase_memory.operations.arguments import (
    check_actor,
    check_limit,
    conversation_ids,
    moment,
    retention_argument,
)
from langchain_supabase_memory.operations.pages import isolate_failure, key_of
from langchain_supabase_memory.operations.rows import value_of
from langchain_supabase_memory.operations.topic_clusters import ClusteredStretch, clusters, vector_threshold

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_supabase_memory.language.messages.redaction.redactor import Redactor
    from langchain_supabase_memory.settings import Retention
    from langchain_supabase_memory.values import ConversationKey

LONGEST_NAME: Final = 200
"""The maximum number of characters of a topic's name."""

_LABEL_WORDS: Final = 3
_ASSIGNED: Final = 50
"""How many stretches get their topic in one transaction."""
_PAGE: Final = 200


@dataclass(frozen=True)
class TopicQuote:
    """What was said about a topic.

    Attributes:
        thread_id: The conversation's thread.
        agent_id: Its agent.
        message_id: The message; `None` if it has no id.
        sequence: The message's number in the conversation.
        text: The words, up to 300 characters.
        at: When it was said.
    """

    thread_id: str
    agent_id: str
    message_id: str | None
    sequence: int
    text: str = field(repr=False)
    at: datetime


@dataclass(frozen=True)
class Topic:
    """What several episodes are about.

    Attributes:
        id: Names the topic in calls. It stays the same when topics are found anew.
        words: Up to 8 words, best first; each stands in at least three of ten of its episodes.
        name: What a person calls it; `None` if nobody named it.
        named_by: Who named it.
        hidden: Whether a person hid it.
        parts: The ids of topics that a person merged into it.
        episodes: How many episodes are about it.
        first_at: When it first came up.
        last_at: When it came up last; `None` if nothing is left but what a person made of it.
        quotes: What was said about it, nearest to its middle first.
    """

    id: str
    words: tuple[str, ...] = field(repr=False)
    name: str | None = field(repr=False)
    named_by: str | None
    hidden: bool
    parts: tuple[str, ...]
    episodes: int
    first_at: datetime | None
    last_at: datetime | None
    quotes: tuple[TopicQuote, ...]

    @property
    def label(self) -> str:
        """What it is called: a person's name for it, or its first three words; `…` if it has none."""
        return self.name or ", ".join(self.words[:_LABEL_WORDS]) or "…"


@dataclass(frozen=True)
class TopicDay:
    """How much was talked about a topic on one day.

    Attributes:
        topic_id: The topic.
        day: The day, in UTC.
        episodes: How many episodes began.
        messages: About how many messages of the user and the assistant they have.
    """

    topic_id: str
    day: date
    episodes: int
    messages: int


@dataclass(frozen=True)
class ForgottenTopic:
    """What went with a topic.

    Attributes:
        words: The words that the user is opted out of now.
        episodes: How many episodes were about it.
        chunks: How many chunks of these went that do not have the words.
    """

    words: tuple[str, ...] = field(repr=False)
    episodes: int
    chunks: int


@dataclass(frozen=True)
class TopicUpdate:
    """What an update of topics did.

    Attributes:
        episodes: How many episodes got a topic.
        owners: For how many owners topics were found anew.
    """

    episodes: int
    owners: int


def read(
    owner: str | None,
    *,
    since: datetime | None = None,
    hidden: bool = False,
    quotes: int = 1,
    limit: int = 200,
    retention: Retention | None = None,
) -> Flow[list[Topic]]:
    """List what the user's conversations are about: the topics with the most episodes first.

    Args:
        owner: The owner; `None` means the access token's subject.
        since: Only what was talked about since; the counts are since then. By default ever.
        hidden: Whether topics that a person hid are listed, too.
        quotes: The maximum number of quotes of each, up to 20.
        limit: The maximum number of topics, up to 500.
        retention: What is beyond this retention is not quoted, and of what is partly beyond it no word is listed; by
            default all messages are retained.

    Raises:
        InvalidInputError: A number is negative, or a time has no time zone.
    """
    check_limit("quotes", quotes, optional=False)
    check_limit("limit", limit, optional=False)
    asked = {"p_since": moment("since", since), "p_hidden": hidden, "p_quotes": quotes, "p_limit": limit}
    rows = yield from call("memory_topics", {**asked, "p_user_id": owner, "p_retention": retention_argument(retention)})
    return [_topic(row) for row in rows]


def get(
    owner: str | None, topic: Topic | str, *, quotes: int = 5, retention: Retention | None = None
) -> Flow[Topic | None]:
    """Return one topic, or the one that it was merged into.

    Args:
        owner: The owner; `None` means the access token's subject.
        topic: The topic, or its id.
        quotes: The maximum number of quotes, up to 20.
        retention: What is beyond this retention is not quoted, and of what is partly beyond it no word is listed; by
            default all messages are retained.

    Returns:
        The topic; `None` if there is no such topic.
    """
    check_limit("quotes", quotes, optional=False)
    asked = {"p_topic_id": topic_id(topic), "p_hidden": True, "p_quotes": quotes, "p_user_id": owner}
    rows = yield from call("memory_topics", {**asked, "p_retention": retention_argument(retention)})
    return _topic(rows[0]) if rows else None


def edited_topics(owner: str | None, retention: Any) -> Flow[list[Mapping[str, Any]]]:
    """List the topics of which a person made something, as `memory_restore` accepts them; what has parts comes first.

    Args:
        owner: The owner; `None` means the access token's subject.
        retention: The retention, as the SQL functions accept it.
    """
    asked = {"p_hidden": True, "p_quotes": 0, "p_limit": 500, "p_parts": True, "p_user_id": owner}
    rows = yield from call("memory_topics", {**asked, "p_retention": retention})
    whole = {row["merged_into"] for row in rows}
    edited = [
        {name: row[name] for name in ("id", "words", "name", "named_by", "hidden", "merged_into")}
        for row in rows
        if row["name"] is not None or row["hidden"] or row["merged_into"] is not None or row["id"] in whole
    ]
    return sorted(edited, key=lambda topic: topic["merged_into"] is not None)


def days(
    owner: str | None, *, since: datetime | None = None, topic: Topic | str | None = None, hidden: bool = False
) -> Flow[list[TopicDay]]:
    """Count by topic and day how much was talked about it. A day without anything has no row.

    Args:
        owner: The owner; `None` means the access token's subject.
        since: Since when; by default the last 90 days.
        topic: Only this topic, or its id.
        hidden: Whether topics that a person hid count, too.

    Raises:
        InvalidInputError: A time has no time zone.
    """
    asked = {"p_since": moment("since", since), "p_topic_id": None if topic is None else topic_id(topic)}
    rows = yield from call("memory_topic_days", {**asked, "p_hidden": hidden, "p_user_id": owner})
    return [
        TopicDay(row["topic_id"], date.fromisoformat(row["day"]), row["stretches"], row["messages"]) for row in rows
    ]


def rename(
    owner: str | None, topic: Topic | str, name: str | None, *, actor: str, redactor: Redactor | None = None
) -> Flow[None]:
    """Give a topic a name, which stays when topics are found anew.

    Args:
        owner: The owner; `None` means the access token's subject.
        topic: The topic, or its id.
        name: The name, up to 200 characters; `None` calls it by its words again.
        actor: Who names it; recorded with the time.
        redactor: Removes secrets and personal data before storage.

    Raises:
        InvalidInputError: The name is no text, is empty or too long, or mentions an opted-out topic.
        NotFoundError: There is no such topic.
    """
    if name is not None and not isinstance(name, str):
        raise InvalidInputError(
            f"A topic's name is a text, not {type(name).__name__}.", hint="Pass None to call it by its words again."
        )
    words = None if name is None else str(redact_value(clean(name).strip(), redactor))
    if words is not None and not 0 < len(words) <= LONGEST_NAME:
        raise InvalidInputError(
            f"A topic's name has 1 to {LONGEST_NAME} characters.", hint="Pass None to call it by its words again."
        )
    yield from _edit(owner, topic, "rename", actor, p_name=words)


def merge(owner: str | None, topic: Topic | str, into: Topic | str | None, *, actor: str) -> Flow[str]:
    """Make a topic a part of another, or one of its own again. No new finding of topics takes it back.

    Args:
        owner: The owner; `None` means the access token's subject.
        topic: The topic, or its id.
        into: The topic that it becomes a part of, or its id; `None` takes a merge back.
        actor: Who does it; recorded with the time.

    Returns:
        The id of the topic that it is a part of now, or its own.

    Raises:
        InvalidInputError: It is the same topic.
        NotFoundError: There is no such topic.
    """
    answer = yield from _edit(owner, topic, "merge", actor, p_into=None if into is None else topic_id(into, "into"))
    return str(answer["topic_id"])


def hide(owner: str | None, topic: Topic | str, *, hidden: bool = True, actor: str) -> Flow[None]:
    """Hide a topic from lists, or show it again. What was said stays where it is.

    Args:
        owner: The owner; `None` means the access token's subject.
        topic: The topic, or its id.
        hidden: Whether it is hidden from now on.
        actor: Who does it; recorded with the time.

    Raises:
        NotFoundError: There is no such topic.
    """
    boolean("hidden", hidden)
    yield from _edit(owner, topic, "hide" if hidden else "show", actor)


def forget(
    owner: str | None,
    topic: Topic | str,
    *,
    words: Sequence[str] | None = None,
    actor: str,
    dry_run: bool = False,
) -> Flow[ForgottenTopic]:
    """Remember nothing more of a topic: opt out of its words, and delete the chunks of its episodes.

    The words are opted out of in all conversations, as `privacy.opt_out` does it, so other topics with these words
    lose them, too. The messages stay; summaries and boards lose what mentions the words.

    Args:
        owner: The owner; `None` means the access token's subject.
        topic: The topic, or its id. Topics that were merged into it go with it.
        words: Which of its words to opt out of; the first three by default.
        actor: Who does it; recorded with the time.
        dry_run: Whether only to say what would go.

    Raises:
        InvalidInputError: One of the words is not the topic's.
        NotFoundError: There is no such topic.
        TooLargeError: The user has as many opt-outs as are allowed.
    """
    asked = {"p_topic_id": topic_id(topic), "p_by": check_actor(actor), "p_user_id": owner, "p_dry_run": dry_run}
    if words is not None:
        words = as_texts("words", words, "a list of words", "Pass some of topic.words.")
    answer = yield from call("memory_forget_topic", {**asked, "p_words": words})
    return ForgottenTopic(tuple(answer["words"]), answer["stretches"], answer["chunks"])


def assign(key: ConversationKey, *, embedder: str | None) -> Flow[int]:
    """Find a topic for the episodes of a conversation that were indexed since: the nearest, or a new one.

    Args:
        key: The conversation.
        embedder: The embedder's name; `None` compares words.

    Returns:
        How many episodes were looked at.
    """
    count = 0
    while True:
        asked = {**conversation_ids(key), "p_model": embedder, "p_limit": _ASSIGNED}
        answer = yield from call("memory_assign_topics", asked, "assign topics")
        count += int(answer["assigned"])
        if not answer["more"]:
            return count


def recluster(owner: str | None, *, embedder: str | None) -> Flow[bool]:
    """Find an owner's topics anew from the newest 2,000 episodes. Ids, names and what was merged stay.

    A topic goes on in the group that shares most episodes with it. It may be killed and repeated at any time: one
    commit stores all of it, and a second one is refused.

    Args:
        owner: The owner; `None` means the access token's subject.
        embedder: The embedder's name; `None` compares words.

    Returns:
        Whether it was stored; not if there are no topics, or another process was faster.
    """
    found: list[ClusteredStretch] = []
    first: Mapping[str, Any] | None = None
    while True:
        place = {"p_after_conversation": found[-1].key[0], "p_after_stretch": found[-1].key[1]} if found else {}
        page = yield from call(
            "memory_topic_stretches",
            {
                "p_model": embedder,
                "p_since": None if first is None else first["since"],
                "p_limit": _PAGE,
                "p_user_id": owner,
                **place,
            },
        )
        first = first or page
        found += [_stretch(row) for row in page["stretches"]]
        if not page["more"]:
            break
    if first["version"] is None:
        return False
    alike = None if embedder is None else float(first["alike"] or 0)
    # Neighbors are compared pair by pair: that takes its time, however short the words are.
    size = INLINE_LIMIT if len(found) > _PAGE else 0
    groups = yield from offload(partial(clusters, found, alike), size)
    answer = yield from call(
        "memory_commit_topics",
        {
            "p_version": first["version"],
            "p_clusters": [
                {"topic_id": each.topic_id, "members": [list(key) for key in each.members]} for each in groups
            ],
            "p_model": embedder,
            "p_since": first["since"],
            "p_threshold": None if alike is None or len(found) < _ASSIGNED else vector_threshold(alike),
            "p_user_id": owner,
        },
        "write topics",
    )
    return bool(answer["committed"])


def update(user_id: str | None, *, embedder: str | None = None) -> Flow[TopicUpdate]:
    """Find a topic for all that was indexed since, and find topics anew where that is due.

    A worker does it by itself. Any number of processes may call it at once. It needs server permissions.

    Args:
        user_id: Only this owner's conversations; by default the memory's user.
        embedder: The embedder's name; `None` compares words.
    """
    episodes = owners = 0
    after: Mapping[str, Any] = {}
    while True:
        place = {"p_after_user": after.get("user"), "p_after": after.get("id")}
        page = yield from call("memory_worker_topics", {"p_limit": _PAGE, "p_user_id": user_id, **place})
        for key in filter(None, map(key_of, page["conversations"])):
            episodes += yield from isolate_failure(key, assign(key, embedder=embedder), lambda _: 0)
        if page["after"] is None:
            break
        after = page["after"]
    # Asked again, since what was found now may have made more of them due.
    for each in (yield from call("memory_worker_topics", {"p_user_id": user_id}))["owners"]:
        owners += yield from isolate_failure(each, recluster(each, embedder=embedder), lambda _: False)
    return TopicUpdate(episodes, owners)


def topic_id(topic: Topic | str, name: str = "topic") -> str:
    """Return a topic's id.

    Raises:
        InvalidInputError: It is neither a topic nor an id.
    """
    return topic.id if isinstance(topic, Topic) else as_uuid(name, topic)


def _edit(
    owner: str | None, topic: Topic | str, action: str, actor: str, **more: str | None
) -> Flow[Mapping[str, Any]]:
    asked = {"p_topic_id": topic_id(topic), "p_action": action, "p_by": check_actor(actor), "p_user_id": owner, **more}
    answer: Mapping[str, Any] = yield from call("memory_edit_topic", asked)
    return answer


def _stretch(row: Sequence[Any]) -> ClusteredStretch:
    conversation_id, stretch, topic, terms, near = row
    return ClusteredStretch(
        (conversation_id, stretch),
        topic,
        tuple(terms),
        tuple(((other, place), float(likeness)) for other, place, likeness in near),
    )


def _topic(row: Mapping[str, Any]) -> Topic:
    lists = {name: tuple(row[name]) for name in ("words", "parts")}
    quotes = tuple(value_of(TopicQuote, each, at=datetime.fromisoformat(each["said_at"])) for each in row["quotes"])
    return value_of(Topic, row, **lists, episodes=row["stretches"], quotes=quotes)
