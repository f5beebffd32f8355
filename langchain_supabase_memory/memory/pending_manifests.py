"""Packs whose answers are not stored yet: what stood in them is stored with the answer, in one round trip."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING, Final

from langchain_core.messages import AIMessage, HumanMessage

from langchain_supabase_memory import fork
from langchain_supabase_memory.context.manifest import encode_manifest
from langchain_supabase_memory.language.messages import content
from langchain_supabase_memory.operations.manifests import encoding
from langchain_supabase_memory.operations.rollout.stages import is_in_share
from langchain_supabase_memory.values import log_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.context.pack import ContextPack
    from langchain_supabase_memory.operations.manifests.encoding import EntryPoint, Lists
    from langchain_supabase_memory.settings import ManifestPolicy
    from langchain_supabase_memory.values import ConversationKey

_MOST: Final = 1_000
"""How many manifests wait for their answers."""

_logger = logging.getLogger(__name__)


class PendingManifests:
    """What stood in prompts whose answers are to come. Every method is safe to call from any thread.

    It is in this process alone: an answer that is stored by another one comes without.

    Args:
        needs_owner: Whether only what names its owner is kept, as another user may be signed in when it is stored.
    """

    def __init__(self, *, needs_owner: bool = False) -> None:
        self._needs_owner = needs_owner
        fork.run_in_each_process(self._begin)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._held: OrderedDict[tuple[ConversationKey, str], Lists] = OrderedDict()

    def put(self, key: ConversationKey, current: Sequence[BaseMessage], lists: Lists | None) -> None:
        """Keep what stood in a prompt until its answer is stored; a newer one of the same turn takes its place.

        Args:
            key: The conversation.
            current: The turn under way, which begins with what was asked; of none nothing is kept.
            lists: The manifest; `None` where there is none, and then none of an earlier prompt takes its place.
        """
        if not current or (self._needs_owner and key.user_id is None):
            return
        if lists is None:
            with self._lock:
                self._held.pop((key, str(current[0].id)), None)
            return
        with self._lock:
            self._held[key, str(current[0].id)] = lists
            self._held.move_to_end((key, str(current[0].id)))
            while len(self._held) > _MOST:
                self._held.popitem(last=False)

    def pop(
        self, key: ConversationKey, messages: Sequence[BaseMessage], new_messages: Sequence[BaseMessage]
    ) -> Lists | None:
        """What stood in the prompt of the newest answer, once; `None` if nothing waits for it.

        Args:
            key: The conversation.
            messages: All messages of a state.
            new_messages: Those of them that are stored now.
        """
        answer = next((each for each in reversed(new_messages) if isinstance(each, AIMessage)), None)
        if answer is None or not self._held:
            return None
        place = next((at for at in range(len(messages) - 1, -1, -1) if messages[at] is answer), -1)
        before = (messages[at] for at in range(place, -1, -1))
        asked = next(
            (each for each in before if isinstance(each, HumanMessage) and content.is_conversation(each)), None
        )
        with self._lock:
            return None if asked is None else self._held.pop((key, str(asked.id)), None)


def build_manifest(policy: ManifestPolicy, pack: ContextPack, kind: EntryPoint) -> Lists | None:
    """What stood in a pack, for its answer; `None` if none is to be kept, or if it cannot be said: nothing is raised.

    Args:
        policy: Of how many it is kept.
        pack: The pack.
        kind: Who asked for it.
    """
    return _suppress_errors(pack.key, partial(encode_manifest, pack, kind)) if policy.share else None


def sampled_manifest(
    policy: ManifestPolicy, key: ConversationKey, lists: Lists | None, messages: Sequence[BaseMessage]
) -> Lists | None:
    """A manifest as it goes to the database with the messages that answer its prompt; `None` if none is to be kept.

    Nothing is raised: what cannot be said is left out.

    Args:
        policy: Of how many it is kept, and for how long.
        key: The conversation.
        lists: What stood in the prompt.
        messages: What is stored; they have ids.
    """
    if lists is None or not messages or not policy.share:
        return None
    return _suppress_errors(key, partial(_encode, policy, key, lists, messages))


def _suppress_errors(key: ConversationKey, make: Callable[[], Lists | None]) -> Lists | None:
    """A manifest, or `None` if it cannot be made: no answer is to be lost for it."""
    try:
        return make()
    except Exception as error:
        failure = type(error).__name__  # its text may hold content, its class does not
        what = "What stood in a prompt could not be noted (%s); its answer is stored without. Please report this."
        _logger.error(what, failure, extra={**log_fields(key), "memory_error": failure})
        return None


def _encode(
    policy: ManifestPolicy, key: ConversationKey, lists: Lists, messages: Sequence[BaseMessage]
) -> Lists | None:
    if policy.share < 1 and not is_in_share(f"{key.agent_id}\n{key.thread_id}\n{messages[-1].id}", policy.share):
        return None
    head = [*lists[0]]
    head[encoding.AGE] = 0 if policy.max_age is None else max(int(policy.max_age.total_seconds()), 1)
    return encoding.fit_manifest([head, *lists[1:], *_usage(messages)])


def _usage(messages: Sequence[BaseMessage]) -> Lists:
    """What the model says it used, where the newest answer says it."""
    answer = next((each for each in reversed(messages) if isinstance(each, AIMessage)), None)
    usage = None if answer is None else answer.usage_metadata
    if not usage:
        return []
    counts = (usage.get("input_tokens"), usage.get("output_tokens"), usage.get("total_tokens"))
    cached = (usage.get("input_token_details") or {}).get("cache_read")
    return [
        [
            encoding.USAGE,
            *(each if isinstance(each, int) and each >= 0 else encoding.NONE for each in (*counts, cached)),
        ]
    ]
