"""Manifests of packs whose answers are not stored yet; each is stored with its answer, in one round trip."""

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

_MAX_PENDING: Final = 1_000
"""The maximum number of manifests that wait for their answers."""

_logger = logging.getLogger(__name__)


class PendingManifests:
    """Manifests of prompts whose answers are pending. Every method is thread-safe.

    They only exist in this process: an answer stored by another process has no manifest.

    Args:
        needs_owner: Whether to keep only entries that name their owner, because another user may be signed in
            later.
    """

    def __init__(self, *, needs_owner: bool = False) -> None:
        self._needs_owner = needs_owner
        fork.run_in_each_process(self._begin)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._held: OrderedDict[tuple[ConversationKey, str], Lists] = OrderedDict()

    def put(self, key: ConversationKey, current: Sequence[BaseMessage], lists: Lists | None) -> None:
        """Keep a prompt's manifest until its answer is stored; a newer one of the same turn replaces it.

        Args:
            key: The conversation.
            current: The current turn, which begins with the user's message; if it is empty, nothing is kept.
            lists: The manifest; `None` also removes that of an earlier prompt.
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
            while len(self._held) > _MAX_PENDING:
                self._held.popitem(last=False)

    def pop(
        self, key: ConversationKey, messages: Sequence[BaseMessage], new_messages: Sequence[BaseMessage]
    ) -> Lists | None:
        """Return and remove the manifest for the newest answer; `None` if there is none.

        Args:
            key: The conversation.
            messages: All messages of a state.
            new_messages: Those of them that are being stored.
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


def build_manifest(
    policy: ManifestPolicy, pack: ContextPack, kind: EntryPoint, *, request_list: Callable[[], list[int]] | None = None
) -> Lists | None:
    """Build a pack's manifest; `None` if none is stored or building it fails. Raises nothing.

    Args:
        policy: The manifest policy.
        pack: The pack.
        kind: What requested the pack.
        request_list: Returns a further list, of what the request had beside the pack.
    """
    if not policy.share:
        return None
    return _suppress_errors(
        pack.key, lambda: [*encode_manifest(pack, kind), *([] if request_list is None else [request_list()])]
    )


def sampled_manifest(
    policy: ManifestPolicy, key: ConversationKey, lists: Lists | None, messages: Sequence[BaseMessage]
) -> Lists | None:
    """Return a manifest to store with the messages that answer its prompt; `None` if none is to be stored.

    Errors are logged, not raised.

    Args:
        policy: The manifest policy.
        key: The conversation.
        lists: The manifest.
        messages: The messages to store; they have ids.
    """
    if lists is None or not messages or not policy.share:
        return None
    return _suppress_errors(key, partial(_encode, policy, key, lists, messages))


def _suppress_errors(key: ConversationKey, make: Callable[[], Lists | None]) -> Lists | None:
    """Return a manifest, or `None` if creating it fails: an answer must not be lost because of it."""
    try:
        return make()
    except Exception as error:
        failure = type(error).__name__  # its text may contain content, its class does not
        what = "The manifest of a prompt could not be created (%s); its answer is stored without. Please report this."
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
    """Return the token usage that the newest answer reports."""
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
