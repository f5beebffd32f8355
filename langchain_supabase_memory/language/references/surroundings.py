"""Check whether the words around a reference let it mean a turn of this conversation."""

from __future__ import annotations

from functools import cached_property

from langchain_supabase_memory.language.references.clause import AROUND, NOUNS, SPOKEN, Clause, CountedNoun, Determiner


class Surroundings(Clause):
    """An utterance with the context checks that all rules share."""

    # -- after

    def _tail(self, index: int, head: str, *, governed: bool, depth: int = 0) -> bool:
        """Return whether what follows a reference allows it: not "of the exam", "that he asked", "to finish"."""
        if not self._follows(index):
            return self._series(index, head, governed=governed, depth=depth)
        kinds = self.words[index].kinds
        if "third" in kinds or (head == "none" and "copula" in kinds and self._next(index + 1, "third")):
            return False  # the first question he asked; ang una ay si Aguinaldo
        if "coordinator" in kinds and depth < 3:
            return self._series(index + 1, head, governed=governed, depth=depth)
        if head == "one" and kinds & {"number", "unit"} and "degree" not in kinds:
            return False
        if head in ("turn", "one") and "compound" in kinds and "place" not in kinds:
            return False  # the second answer key
        if "number" in kinds and head == "turn":
            return True
        if kinds & {"of", "place", "to"}:
            return self._tied(index, head, governed=governed, depth=depth)
        if "subject" in kinds:
            return self._begins_telling(index, head)
        if "that" in kinds and self._follows(index + 1):
            return self._begins_telling(index + 1, head) or self._is(index + 1, "copula", "auxiliary", *SPOKEN)
        if "linker" in kinds:
            return not any(self._next(each, "third") for each in range(index + 1, index + 5))
        if kinds & SPOKEN and self._next(index + 1, "of"):
            return self._is_this_conversation(index + 2, persons=True)  # asked by me
        if kinds & {"definite", "mine"} and self._follows(index + 1) and self._unknown(index + 1):
            return not any(self._next(each, *SPOKEN) for each in range(index + 2, index + 4))  # the teacher asked
        return self.words[index].entry.time is None or "hour" not in kinds

    def _tied(self, index: int, head: str, *, governed: bool, depth: int) -> bool:
        """Return whether a preposition links a reference to this conversation, or only says how to answer."""
        if self._is(index, "of"):
            return self._is_this_conversation(index + 1, persons=False)
        here = self._is_this_conversation(index + 1, persons=head != "none") and not (
            self._is(index, "to") and self._next(index + 1, "base")
        )
        if self._is(index, "place"):
            how = self._is(index, "in") and not self._next(index + 1, "definite", "mine", "yours")
            return here or (governed and how)  # explain the first one in bullet points
        if self._follows(index + 1) and (self.words[index + 1].entry.position or 0) > 0:
            return self._series(index + 1, head, governed=governed, depth=depth + 1)
        thing = head == "one" and self._next(index + 1, "definite", "mine", "yours")
        return here or governed or thing  # translate the first one to Tagalog; apply it to my case

    def _series(self, index: int, head: str, *, governed: bool, depth: int) -> bool:
        """Return whether items joined by "and" or a comma count turns, too: not "the first and second grade"."""
        while self._is(index, "coordinator", "definite"):
            index += 1
        if head != "none" or index >= len(self.words):
            return True
        word = self.words[index]
        if word.entry.position is None:
            return word.broken or not (self._unknown(index) or word.kinds & NOUNS)
        other = self._head(index + 1, linked=word.entry.linked)
        if other is None or other.kind in ("thing", "made"):
            return False
        counts = other.kind == "none" and not word.entry.loose and self._follows(other.after)
        if counts and not self._cannot_be_counted(other.after):
            return False
        return self._tail(other.after, other.kind, governed=governed, depth=depth + 1)

    def _is_this_conversation(self, index: int, *, persons: bool) -> bool:
        """Return whether a whole, a place or an owner is this conversation: "of my questions", "sa usapan natin"."""
        while self._next(index, "definite", "modifier", "number", "plural") and self._follows(index + 1):
            index += 1
        if self._next(index, "mine", "yours"):
            index += 1
        if not self._follows(index):
            return True
        word = self.words[index]
        if word.kinds & (SPOKEN | {"turn", "turns", "conversation", "manner", "this"}):
            return not self._next(index + 1, "of") or self._is_this_conversation(index + 2, persons=persons)
        return word.entry.time is not None or word.entry.position is not None or (persons and "you" in word.kinds)

    def _begins_telling(self, index: int, head: str) -> bool:
        """Return whether a clause begins in which the user or the assistant says, asks or gives: "you mentioned"."""
        if self._next(index, "linker"):
            index += 1
        if self._next(index, "that"):
            index += 1
        if self._next(index, *SPOKEN) and self._next(index + 1, "speaker", "actor", "particle"):
            return not any(self._next(each, "third") for each in range(index + 1, index + 4))
        if not self._next(index, "subject"):
            return False
        verbs = ("base", *SPOKEN) if head == "none" else ("base", "understood", *SPOKEN)
        return any(self._next(each, *verbs) for each in range(index, index + 5))

    # -- anywhere

    @cached_property
    def _is_elsewhere(self) -> bool:
        """Whether the utterance mentions questions and answers from elsewhere: "in the exam", "ng quiz"."""
        for at, word in enumerate(self.words):
            if "elsewhere" in word.kinds:
                back = at
                while back > at - 3 and self._follows(back):
                    back -= 1
                    if self._is(back, "of", "place"):
                        return True
        return False

    @cached_property
    def _was_brought(self) -> int | None:
        """The index where the utterance itself introduces several things: "I have two dogs"."""
        for at, word in enumerate(self.words):
            if (word.entry.number or 0) > 1:
                noun = at + 1
                while self._next(noun, "modifier", "speaker", "particle", "actor", "linker"):
                    noun += 1
                if self._follows(noun) and (self._unknown(noun) or self.words[noun].kinds & NOUNS - {"turns"}):
                    return noun
        return None

    def _was_listed_before(self, start: int) -> bool:
        """Return whether an earlier clause introduced the counted things: "I have two dogs. The first one ..."."""
        noun = self._was_brought
        return noun is not None and any(
            each.broken or "coordinator" in each.kinds for each in self.words[noun + 1 : start + 1]
        )

    # -- before

    def _stands(self, start: int, before: Determiner, head: CountedNoun, position: int) -> bool:
        """Return whether what precedes a reference allows it."""
        if not self._follows(start):
            return True
        if self._is(start - 1, "presenting"):
            return False
        if before.kind == "mine" and self._is(start - 1, "base") and not self._did(start):
            return self._is(start - 1, "request") and not self._is(start - 1, "ask")
        bare = head.kind == "none"
        verb = start - 2 if self._is(start - 1, "you") else start - 1
        told = self._is(verb, *SPOKEN) or (bare and self._is(verb, "to"))
        if told and self._is_outside(verb - 1):
            return False  # the judge asked the second question; x to the fourth
        verb = start - 1
        while verb > start - 3 and self._follows(verb) and self._is(verb, "degree") and not self._is(verb, "copula"):
            verb -= 1
        if self._is(verb, "copula") and not self._is(verb, "question"):
            return self._is_asked_of(verb, head.kind, position)
        if bare and position == -1 and self._is(start, "this", "that") and self._is(start - 1, "modal", "auxiliary"):
            return False  # will this last?
        if bare and self._is(start - 1, "person") and not self._governed(start):
            return self._is(start, "place")  # ako ang una
        if bare and self._is(start - 1, "dated") and not (start > 1 and self._is(start - 2, "request")):
            return False  # on the first
        return head.kind == "turn" or not self._is_done(start)

    def _is_outside(self, index: int) -> bool:
        """Return whether the word at an index, in one clause with the next, is an ordinary noun or a person."""
        return (
            index >= 0 and self._follows(index + 1) and (self._unknown(index) or self._is(index, "third", "vocative"))
        )

    def _is_done(self, start: int) -> bool:
        """Return whether the preceding words are an action on other things: "binili ko na yung una"."""
        back = start - 1
        while back > max(start - 6, 0) and self._is(back, "speaker", "particle", "linker", "function", "actor"):
            back -= 1
        return self._is(back, "world")

    def _is_asked_of(self, index: int, head: str, position: int) -> bool:
        """Return whether a copula asks for what follows, "what was the first", not gives a rank, "he was the first"."""
        if self._is(index, "person"):
            return False  # we're the first
        if not self._follows(index) or self._is(index - 1, "question"):
            return True  # is the second one better?
        if self._is(index - 1, "person", "third", "this", "presenting", "modal"):
            return False
        if self._governed(index):
            return True  # what I meant is the second
        if head == "none" or (head == "one" and position == -1):
            return False
        return head == "turn" or not self._unknown(index - 1)

    def _opens(self, start: int, before: Determiner, head: CountedNoun) -> bool:
        """Return whether the reference announces something new: "my first question is why", "second question: ..."."""
        at = head.after
        new = before.kind == "none" and head.kind != "number"
        if new and self._next(at, "limit"):
            return True  # last question lang
        if not self._says_more(at, new=new):
            return False
        if self._next(at, "copula") and not self._is(at, "was") and at + 1 < len(self.words):
            own = new or head.kind == "number" or "mine" in (before.kind, head.owner)
            return own and (self.words[at + 1].broken or self._is(at + 1, "question", "about", "modal", "auxiliary"))
        if not self.words[at].broken:
            return False
        if ":" in self.words[at].gap:
            return before.kind in ("none", "mine") or (before.kind == "definite" and not self._follows(start))
        if not new or (head.kind == "one" and "." not in self.words[at].gap):
            return False
        while start > 0 and self._follows(start) and self._is(start - 1, *AROUND):
            start -= 1
        return not self._follows(start)

    def _says_more(self, index: int, *, new: bool) -> bool:
        """Return whether the text after an index says more than a request to the assistant about a turn."""
        rest = self.words[index : self._sentence(index).stop] if index < len(self.words) else []
        worldly = any(not each.kinds and each.entry.position is None for each in rest)
        if not rest or not new or not rest[0].broken:
            return worldly
        asked = any("request" in each.kinds and "auxiliary" not in each.kinds for each in rest)
        return not asked and (worldly or not all(each.kinds & (AROUND | {"in", "manner"}) for each in rest))
