"""The Postgres of the benchmark: its text search is a baseline, and the memory runs on it."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import numpy as np
import psycopg

from langchain_supabase_memory.adapters.schema.migrate import migrate
from tests.services.postgres import Cluster

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Self

    from numpy.typing import NDArray

Lexemes = dict[str, int]
"""The normalized words of a text, with their counts."""

_RANKS = """
with turns as materialized (
  select number, to_tsvector('english', text) as words from unnest(%s::text[]) with ordinality as t (text, number))
select (select array_agg(case when turns.words @@ query.any then ts_rank_cd(turns.words, query.any) else 0 end
                         order by turns.number)
        from turns)
from unnest(%s::text[]) with ordinality as q (text, number)
cross join lateral (select QUERY as any offset 0) query
order by q.number
"""
_ALL_WORDS = "websearch_to_tsquery('english', q.text)"
# The common variant for questions that need not match as a whole.
_ANY_WORD = "replace(plainto_tsquery('english', q.text)::text, '&', '|')::tsquery"


class Postgres:
    """A server with an empty database of this release. Use it as a context manager."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._known: dict[str, Lexemes] = {}

    def __enter__(self) -> Self:
        cluster = Cluster()
        self._stack.callback(cluster.stop)
        cluster.start()
        self.conn_string = cluster.conn_string(cluster.create_database())
        migrate(self.conn_string)
        self._connection = self._stack.enter_context(psycopg.connect(self.conn_string, autocommit=True))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def lexemes(self, texts: Sequence[str]) -> list[Lexemes]:
        """Return the result of `to_tsvector('english', ...)` for each text."""
        missing = list({text for text in texts if text not in self._known})
        rows = self._connection.execute(
            """select t.number, w.lexeme, cardinality(w.positions)
               from unnest(%s::text[]) with ordinality as t (text, number), unnest(to_tsvector('english', t.text)) w""",
            (missing,),
        )
        self._known.update((text, {}) for text in missing)
        for number, lexeme, count in rows:
            self._known[missing[number - 1]][lexeme] = count
        return [self._known[text] for text in texts]

    def ranks(self, questions: Sequence[str], texts: Sequence[str], *, any_word: bool) -> NDArray[np.float64]:
        """Return `ts_rank_cd` of each text (a column) for each question (a row); 0 if the text does not match."""
        statement = _RANKS.replace("QUERY", _ANY_WORD if any_word else _ALL_WORDS)
        rows = self._connection.execute(statement.encode(), (list(texts), list(questions)))
        return np.array([row[0] for row in rows], np.float64)
