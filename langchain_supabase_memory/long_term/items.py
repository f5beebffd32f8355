"""Flows over the store's items: many operations in one call, their vectors, and cleanup.

An item is a JSON object under a namespace (labels, outermost first) and a key. This module translates the operations of
LangGraph's `BaseStore` to database calls.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from langgraph.store.base import GetOp, Item, ListNamespacesOp, PutOp, SearchItem, SearchOp, get_text_at_path

from langchain_supabase_memory.effects import Flow, call, embed
from langchain_supabase_memory.errors import ConfigurationError, EmbeddingError, InvalidInputError
from langchain_supabase_memory.language.messages import sanitizer
from langchain_supabase_memory.language.messages.redaction.payload import redact_value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from langgraph.store.base import Op, Result

    from langchain_supabase_memory.language.messages.redaction.redactor import Redactor

_logger = logging.getLogger(__name__)

PAGE: Final = 1000
"""The maximum number of items or namespaces that one search or listing returns."""

LONGEST_NAME: Final = 1600
"""The maximum bytes of a namespace's labels and a key together, because they form an index entry."""

LONGEST_TTL: Final = 1e9
"""The maximum time to live, in minutes: nearly two thousand years."""

MAX_CONDITIONS: Final = 1000
"""The maximum number of conditions of one filter, including nested ones."""

DEEPEST_FILTER: Final = 50
"""The maximum nesting depth of one filter."""

REINDEX_PAGE: Final = 100
"""How many items are embedded between two database calls."""


@dataclass(frozen=True)
class Index:
    """How items are embedded.

    Attributes:
        model: The model name stored with the vectors; vectors of different names are never compared.
        fields: The paths of a value to embed, unless a put sets its own; `$` is the whole value.
        dimensions: The required number of dimensions; `None` accepts the embedder's.
    """

    model: str
    fields: tuple[str, ...] = ("$",)
    dimensions: int | None = None


@dataclass(frozen=True)
class _Put:
    """A prepared put: the operation for the database, and the texts to embed, with their fields."""

    operation: dict[str, Any]
    texts: list[tuple[str, str]]


def perform(
    user_id: str | None, ops: Iterable[Op], index: Index | None, redactor: Redactor | None = None
) -> Flow[list[Result]]:
    """Perform any mix of operations in one database call.

    Reads see the state before the writes of the same call. Of several puts of one item, the last one wins. If the
    embedder fails, items are stored without vectors and a search is by keyword; `reindex` adds the vectors later.

    Args:
        user_id: The owner; `None` means the subject of the caller's access token.
        ops: LangGraph's operations.
        index: How items are embedded; without it, search is by keyword.
        redactor: Removes secrets and personal data from values before they are stored or embedded. Namespaces and keys
            are not redacted, because items are looked up by them.

    Returns:
        The result of each operation, in order.

    Raises:
        InvalidInputError: An operation has values that cannot be stored or looked up; nothing was done.
        MigrationConflictError: The searched items were embedded by another model.
    """
    listed = list(ops)
    puts: dict[tuple[tuple[str, ...], str], int] = {}
    prepared: list[_Put | dict[str, Any]] = []
    for place, op in enumerate(listed):
        made = _prepare(op, index, redactor)
        prepared.append(made)
        if isinstance(op, PutOp):
            puts[tuple(op.namespace), str(op.key)] = place
    if not listed:
        return []
    last = set(puts.values())
    if index is not None:
        yield from _embed_puts([each for place, each in enumerate(prepared) if place in last], index)
        yield from _embed_queries([each for each in prepared if isinstance(each, dict)], index)
    sent = [
        (place, each.operation if isinstance(each, _Put) else each)
        for place, each in enumerate(prepared)
        if isinstance(each, dict) or place in last
    ]
    arguments = {"p_ops": [each for _, each in sent], "p_user_id": user_id}
    answers = yield from call("memory_store", arguments, "use store")
    results: list[Result] = [None] * len(listed)
    for (place, _), answer in zip(sent, answers, strict=True):
        results[place] = _decode(listed[place], answer)
    return results


def sweep(user_id: str | None) -> Flow[int]:
    """Delete expired items.

    Args:
        user_id: Only this user's items; `None` means all items that the caller may see.

    Returns:
        The number of deleted items.
    """
    swept: int = 0
    after: str | None = None
    while True:
        page = yield from call("memory_store_sweep", {"p_user_id": user_id, "p_after": after})
        swept += page["items"]
        after = page["after"]
        if after is None:
            return swept


def reindex(user_id: str | None, index: Index) -> Flow[int]:
    """Embed every item that has no vector of the current model. It can be stopped and restarted at any time.

    Items and the vectors of other models are unchanged, so searches with another model continue to work.

    Args:
        user_id: Only this user's items; `None` means all items that the caller may see.
        index: How items are embedded.

    Returns:
        The number of items that were embedded.

    Raises:
        EmbeddingError: The embedder failed; vectors stored before remain.
    """
    (probe,) = yield from embed(["dimensions"])
    arguments = {"p_model": index.model, "p_dimensions": _width([probe], index), "p_user_id": user_id}
    indexed: int = 0
    after: Mapping[str, str] | None = None
    ended = False
    vectors: list[dict[str, Any]] = []
    while True:
        # The last call only commits.
        place = {"p_items": vectors, "p_after": after, "p_limit": 0 if ended else REINDEX_PAGE}
        page = yield from call("memory_store_reindex", {**arguments, **place})
        indexed += page["indexed"]
        after, vectors = page["after"], []
        found = [(item, _texts(item["value"], _fields(item["index"], index))) for item in page["items"]]
        flat = [text for _, texts in found for _, text in texts]
        made = iter((yield from embed(flat)) if flat else [])
        for item, texts in found:
            if texts:
                named = {name: item[name] for name in ("user_id", "namespace", "key", "updated_at")}
                vectors.append({**named, "vectors": [_vector(field, next(made)) for field, _ in texts]})
        ended = after is None
        if ended and not vectors:
            return indexed


def _prepare(op: Op, index: Index | None, redactor: Redactor | None) -> _Put | dict[str, Any]:
    """Convert an operation to its database form, without vectors."""
    if isinstance(op, GetOp):
        return {"op": "get", **_item_address(op.namespace, op.key), "refresh": bool(op.refresh_ttl)}
    if isinstance(op, PutOp):
        return _put(op, index, redactor)
    if isinstance(op, SearchOp):
        return _search(op)
    if isinstance(op, ListNamespacesOp):
        return _list(op)
    raise InvalidInputError(
        f"A store cannot perform a {type(op).__name__}.", hint="Pass GetOp, PutOp, SearchOp or ListNamespacesOp."
    )


def _put(op: PutOp, index: Index | None, redactor: Redactor | None) -> _Put:
    named = _item_address(op.namespace, op.key)
    if op.value is None:
        return _Put({"op": "delete", **named}, [])
    if not op.namespace:
        raise InvalidInputError("The namespace is empty.", hint='Pass at least one label, such as ("memories",).')
    if not isinstance(op.value, Mapping):
        raise InvalidInputError(
            f"A value must be a dictionary, not {type(op.value).__name__}.", hint='Wrap it: {"content": ...}.'
        )
    fields = _checked_fields(op.index)
    value = redact_value(sanitizer.encode(dict(op.value)), redactor)
    try:
        json.dumps(value)
    except (ValueError, RecursionError):  # Python cannot format an integer of more than 4,300 digits
        raise InvalidInputError("The value has a number with too many digits.", hint="Store it as a string.") from None
    texts = [] if index is None else _texts(value, _fields(fields, index))
    return _Put({"op": "put", **named, "value": value, "index": fields, "ttl": _minutes(op.ttl)}, texts)


def _search(op: SearchOp) -> dict[str, Any]:
    if op.query is not None and not isinstance(op.query, str):
        raise InvalidInputError(f"A query must be a string, not {type(op.query).__name__}.", hint="Pass a string.")
    if op.filter is not None and not isinstance(op.filter, Mapping):
        raise InvalidInputError(
            f"A filter must be a dictionary, not {type(op.filter).__name__}.", hint='Pass {"field": value}.'
        )
    return {
        "op": "search",
        "prefix": _labels(op.namespace_prefix),
        **({"filter": _node(op.filter, [MAX_CONDITIONS])} if op.filter else {}),
        **({"query": sanitizer.clean(op.query)} if op.query and not op.query.isspace() else {}),
        "refresh": bool(op.refresh_ttl),
        **_page(op.limit, op.offset),
    }


def _list(op: ListNamespacesOp) -> dict[str, Any]:
    conditions = []
    for condition in op.match_conditions or ():
        if condition.match_type not in ("prefix", "suffix"):
            raise InvalidInputError("A namespace is matched by prefix or suffix.", hint="Pass one of these two.")
        conditions.append({"type": condition.match_type, "path": _labels(condition.path)})
    if op.max_depth is not None:
        _checked_number("max_depth", op.max_depth)
    return {"op": "list", "conditions": conditions, "depth": op.max_depth, **_page(op.limit, op.offset)}


def _embed_puts(puts: Sequence[_Put | dict[str, Any]], index: Index) -> Flow[None]:
    waiting = [put for put in puts if isinstance(put, _Put) and put.texts]
    flat = list(dict.fromkeys(text for put in waiting for _, text in put.texts))
    if not flat:
        return
    try:
        made = yield from embed(flat)
        _width(made, index)
    except EmbeddingError as error:
        counts = {"memory_items": len(waiting), "memory_error": type(error).__name__}
        _logger.info("%d items were stored without vectors; call reindex() later", len(waiting), extra=counts)
        return
    vectors = dict(zip(flat, made, strict=True))
    for put in waiting:
        put.operation["model"] = index.model
        put.operation["vectors"] = [_vector(field, vectors[text]) for field, text in put.texts]


def _embed_queries(operations: Sequence[dict[str, Any]], index: Index) -> Flow[None]:
    asked = [each for each in operations if "query" in each]
    flat = list(dict.fromkeys(each["query"] for each in asked))
    if not flat:
        return
    try:
        made = yield from embed(flat, is_query=True)
        _width(made, index)
    except EmbeddingError as error:
        _logger.info("The embedder failed; the search used keywords only", extra={"memory_error": type(error).__name__})
        return
    vectors = dict(zip(flat, made, strict=True))
    for each in asked:
        each["model"] = index.model
        each["vector"] = vectors[each["query"]]


def _decode(op: Op, answer: Any) -> Result:
    if isinstance(op, GetOp):
        return None if answer is None else Item(**_fields_of(answer))
    if isinstance(op, SearchOp):
        return [
            SearchItem(**_fields_of(each), score=None if each["score"] is None else float(each["score"]))
            for each in answer
        ]
    if isinstance(op, ListNamespacesOp):
        return [tuple(each) for each in answer]
    return None


def _fields_of(answer: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "namespace": tuple(answer["namespace"]),
        "key": answer["key"],
        "value": sanitizer.decode(answer["value"]),
        "created_at": answer["created_at"],
        "updated_at": answer["updated_at"],
    }


def _item_address(namespace: Sequence[str], key: object) -> dict[str, Any]:
    labels, name = _labels(namespace), str(key)
    _check_text("A key", name)
    # The same format as memory_private.store_path, which escapes two characters.
    path = "".join(f"{label}\1" for label in labels)
    escaped = path.count("\1") - len(labels) + path.count("\2")
    if len(path.encode()) + escaped + len(name.encode()) > LONGEST_NAME:
        raise InvalidInputError(
            f"A namespace and a key have more than {LONGEST_NAME} bytes together.",
            hint="Use short names, such as ids, and put long text into the value.",
        )
    return {"namespace": labels, "key": name}


def _labels(namespace: object) -> list[str]:
    if isinstance(namespace, str) or not isinstance(namespace, Sequence):
        raise InvalidInputError(
            f"A namespace must be a tuple of labels, not {type(namespace).__name__}.",
            hint='Pass ("memories", user_id), for example; one label is ("memories",).',
        )
    for label in namespace:
        if not isinstance(label, str):
            raise InvalidInputError(
                f"A namespace's label must be a string, not {type(label).__name__}.", hint="Pass str(...)."
            )
        if not label:
            raise InvalidInputError("A namespace's label is empty.", hint="Omit it, or give it a name.")
        _check_text("A namespace's label", label)
    return [str(label) for label in namespace]


def _check_text(name: str, text: str) -> None:
    if sanitizer.clean(text) != text:
        raise InvalidInputError(f"{name} contains NUL or a lone surrogate.", hint="Remove it.")


def _node(filter_value: Any, budget: list[int], depth: int = 0) -> dict[str, Any]:
    """Convert a filter to its database form, in which a compared value cannot be mistaken for an operator."""
    budget[0] -= 1
    if budget[0] < 0 or depth > DEEPEST_FILTER:
        raise InvalidInputError(
            f"A filter has more than {MAX_CONDITIONS} conditions or {DEEPEST_FILTER} levels.",
            hint="Store the filtered data in one field.",
        )
    if isinstance(filter_value, Mapping):
        for key in filter_value:
            if not isinstance(key, str):
                raise InvalidInputError(
                    f"A filter's key must be a string, not {type(key).__name__}.", hint="Pass the field's name."
                )
            _check_text("A filter's key", key)
        if any(key.startswith("$") for key in filter_value):
            return {"all": [[operator, sanitizer.encode(operand)] for operator, operand in filter_value.items()]}
        return {"fields": {key: _node(each, budget, depth + 1) for key, each in filter_value.items()}}
    if isinstance(filter_value, (list, tuple)):
        if not any(isinstance(each, (Mapping, list, tuple)) for each in filter_value):
            return {"list": [sanitizer.encode(each) for each in filter_value]}
        return {"items": [_node(each, budget, depth + 1) for each in filter_value]}
    return {"all": [["$eq", sanitizer.encode(filter_value)]]}


def _page(limit: int, offset: int) -> dict[str, int]:
    _checked_number("limit", limit)
    _checked_number("offset", offset)
    if limit > PAGE:
        raise InvalidInputError(
            f"limit is above {PAGE}.", hint=f"Read pages: limit={PAGE} with offset=0, offset={PAGE} and so on."
        )
    return {"limit": limit, "offset": offset}


def _checked_number(name: str, number: object) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 2**31:
        raise InvalidInputError(f"{name} must be a whole number from 0.", hint=f"Pass {name}=10, for example.")


def _minutes(ttl: float | None) -> float | None:
    if ttl is None:
        return None
    if isinstance(ttl, bool) or not isinstance(ttl, (int, float)) or not 0 < ttl <= LONGEST_TTL:
        raise InvalidInputError(
            "A ttl must be above 0, in minutes.", hint="Pass ttl=60 for an hour, or ttl=None for an item that stays."
        )
    return float(ttl)


def _checked_fields(index: Any) -> list[str] | None:
    """Validate a put's fields: `None` means the store's own, an empty list means none."""
    if index is None:
        return None
    if index is False:
        return []
    if not isinstance(index, (list, tuple)) or not all(isinstance(path, str) for path in index):
        raise InvalidInputError(
            "index must be False or a list of paths.", hint='Pass index=["content"], or leave it out.'
        )
    for path in index:
        _check_text("A path", path)
    return list(index)


def _fields(fields: Sequence[str] | None, index: Index) -> Sequence[str]:
    return index.fields if fields is None else fields


def _texts(value: Mapping[str, Any], fields: Sequence[str]) -> list[tuple[str, str]]:
    """Return the texts of a stored value to embed, each with its field; for a list, one per element."""
    plain = _plain(value)
    found = []
    for field in fields:
        texts = [text for text in get_text_at_path(plain, field) if text and not text.isspace()]
        found += [(f"{field}.{place}" if len(texts) > 1 else field, text) for place, text in enumerate(texts)]
    return found


def _plain(value: Any) -> Any:
    """Convert a stored value to plain JSON, with encoded values as their text."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if not isinstance(value, dict):
        return value
    if sanitizer.TAG not in value:
        return {key: _plain(each) for key, each in value.items()}
    meant = sanitizer.decode(value)
    if isinstance(meant, (list, tuple, set, frozenset)):
        return [_plain(sanitizer.encode(each)) for each in meant]
    if isinstance(meant, dict):
        return {str(key): _plain(sanitizer.encode(each)) for key, each in meant.items()}
    return str(meant)


def _vector(field: str, vector: Sequence[float]) -> dict[str, Any]:
    return {"field": field, "vector": list(vector)}


def _width(vectors: Sequence[Sequence[float]], index: Index) -> int:
    """Return the number of dimensions of the vectors, after checking it."""
    width = len(vectors[0])
    if index.dimensions is not None and width != index.dimensions:
        raise ConfigurationError(
            f"The embedder's vectors have {width} dimensions, but the index has {index.dimensions}.",
            hint=f'Pass index={{"dims": {width}, ...}}, or omit dims.',
        )
    return width
