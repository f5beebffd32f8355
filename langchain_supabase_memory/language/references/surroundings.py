"""What stands around a reference: whether it leaves it a reference to a turn of this conversation."""

from __future__ import annotations

from functools import cached_property

from langchain_supabase_memory.language.references.clause import AROUND, NOUNS, SPOKEN, Clause, Determiner, Head


class Surroundings(Clause):
    """An utterance, with the questions that every rule asks about what stands around."""

    # -- after

    def _tail(self, at: int, head: str, *, governed: bool, depth: int = 0) -> bool:
        """Whether what follows a reference leaves it one: not "of the exam", "that he asked", "to finish"."""
        if not self._follows(at):
            return self._series(at, head, governed=governed, depth=depth)
        kinds = self.words[at].kinds
        if "third" in kinds or (head == "none" and "copula" in kinds and self._next(at + 1, "third")):
            return False  # the first question he asked; ang una ay si Aguinaldo
        if "coordinator" in kinds and depth < 3:
            return self._series(at + 1, head, governed=governed, depth=depth)
        if head == "one" and kinds & {"number", "unit"} and "degree" not in kinds:
            return False
        if head in ("turn", "one") and "compound" in kinds and "place" not in kinds:
            return False  # the second answer key
        if "number" in kinds and head == "turn":
            return True
        if kinds & {"of", "place", "to"}:
            return self._tied(at, head, governed=governed, depth=depth)
        if "subject" in kinds:
            return self._told(at, head)
        if "that" in kinds and self._follows(at + 1):
            return self._told(at + 1, head) or self._is(at + 1, "copula", "auxiliary", *SPOKEN)
        if "linker" in kinds:
            return not any(self._next(each, "third") for each in range(at + 1, at + 5))
        if kinds & SPOKEN and self._next(at + 1, "of"):
            return self._here(at + 2, persons=True)  # asked by me
        if kinds & {"definite", "mine"} and self._follows(at + 1) and self._unknown(at + 1):
            return not any(self._next(each, *SPOKEN) for each in range(at + 2, at + 4))  # the teacher asked
        return self.words[at].entry.time is None or "hour" not in kinds

    def _tied(self, at: int, head: str, *, governed: bool, depth: int) -> bool:
        """Whether a preposition after a reference ties it to this conversation, or says only how to answer."""
        if self._is(at, "of"):
            return self._here(at + 1, persons=False)
        here = self._here(at + 1, persons=head != "none") and not (self._is(at, "to") and self._next(at + 1, "base"))
        if self._is(at, "place"):
            how = self._is(at, "in") and not self._next(at + 1, "definite", "mine", "yours")
            return here or (governed and how)  # explain the first one in bullet points
        if self._follows(at + 1) and (self.words[at + 1].entry.position or 0) > 0:
            return self._series(at + 1, head, governed=governed, depth=depth + 1)
        thing = head == "one" and self._next(at + 1, "definite", "mine", "yours")
        return here or governed or thing  # translate the first one to Tagalog; apply it to my case

    def _series(self, at: int, head: str, *, governed: bool, depth: int) -> bool:
        """Whether what is joined by "and" or a comma counts turns, too: not "the first and second grade"."""
        while self._is(at, "coordinator", "definite"):
            at += 1
        if head != "none" or at >= len(self.words):
            return True
        word = self.words[at]
        if word.entry.position is None:
            return word.broken or not (self._unknown(at) or word.kinds & NOUNS)
        other = self._head(at + 1, linked=word.entry.linked)
        if other is None or other.sort in ("thing", "made"):
            return False
        counts = other.sort == "none" and not word.entry.loose and self._follows(other.after)
        if counts and not self._bounded(other.after):
            return False
        return self._tail(other.after, other.sort, governed=governed, depth=depth + 1)

    def _here(self, at: int, *, persons: bool) -> bool:
        """Whether a whole, a place or an owner is this conversation: "of my questions", "sa usapan natin"."""
        while self._next(at, "definite", "modifier", "number", "plural") and self._follows(at + 1):
            at += 1
        if self._next(at, "mine", "yours"):
            at += 1
        if not self._follows(at):
            return True
        word = self.words[at]
        if word.kinds & (SPOKEN | {"turn", "turns", "conversation", "manner", "this"}):
            return not self._next(at + 1, "of") or self._here(at + 2, persons=persons)
        return word.entry.time is not None or word.entry.position is not None or (persons and "you" in word.kinds)

    def _told(self, at: int, head: str) -> bool:
        """Whether a clause begins where one of the two who talk says, asks or gives: "you mentioned"."""
        if self._next(at, "linker"):
            at += 1
        if self._next(at, "that"):
            at += 1
        if self._next(at, *SPOKEN) and self._next(at + 1, "speaker", "actor", "particle"):
            return not any(self._next(each, "third") for each in range(at + 1, at + 4))
        if not self._next(at, "subject"):
            return False
        verbs = ("base", *SPOKEN) if head == "none" else ("base", "understood", *SPOKEN)
        return any(self._next(each, *verbs) for each in range(at, at + 5))

    # -- anywhere

    @cached_property
    def _elsewhere(self) -> bool:
        """Whether questions and answers of another place are spoken of: "in the exam", "ng quiz"."""
        for at, word in enumerate(self.words):
            if "elsewhere" in word.kinds:
                back = at
                while back > at - 3 and self._follows(back):
                    back -= 1
                    if self._is(back, "of", "place"):
                        return True
        return False

    @cached_property
    def _brought(self) -> int | None:
        """Where the utterance itself first brings several of something: "I have two dogs"."""
        for at, word in enumerate(self.words):
            if (word.entry.number or 0) > 1:
                noun = at + 1
                while self._next(noun, "modifier", "speaker", "particle", "actor", "linker"):
                    noun += 1
                if self._follows(noun) and (self._unknown(noun) or self.words[noun].kinds & NOUNS - {"turns"}):
                    return noun
        return None

    def _listed(self, start: int) -> bool:
        """Whether what is counted was brought before, in a clause of its own: "I have two dogs. The first one ..."."""
        noun = self._brought
        return noun is not None and any(
            each.broken or "coordinator" in each.kinds for each in self.words[noun + 1 : start + 1]
        )

    # -- before

    def _stands(self, start: int, before: Determiner, head: Head, position: int) -> bool:
        """Whether what stands before a reference lets it be one."""
        if not self._follows(start):
            return True
        if self._is(start - 1, "presenting"):
            return False
        if before.sort == "mine" and self._is(start - 1, "base") and not self._did(start):
            return self._is(start - 1, "request") and not self._is(start - 1, "ask")
        bare = head.sort == "none"
        verb = start - 2 if self._is(start - 1, "you") else start - 1
        told = self._is(verb, *SPOKEN) or (bare and self._is(verb, "to"))
        if told and self._outside(verb - 1):
            return False  # the judge asked the second question; x to the fourth
        verb = start - 1
        while verb > start - 3 and self._follows(verb) and self._is(verb, "degree") and not self._is(verb, "copula"):
            verb -= 1
        if self._is(verb, "copula") and not self._is(verb, "question"):
            return self._asked_of(verb, head.sort, position)
        if bare and position == -1 and self._is(start, "this", "that") and self._is(start - 1, "modal", "auxiliary"):
            return False  # will this last?
        if bare and self._is(start - 1, "person") and not self._governed(start):
            return self._is(start, "place")  # ako ang una
        if bare and self._is(start - 1, "dated") and not (start > 1 and self._is(start - 2, "request")):
            return False  # on the first
        return head.sort == "turn" or not self._done(start)

    def _outside(self, at: int) -> bool:
        """Whether the word at a place, in one clause with the next, is somebody or something of the world."""
        return at >= 0 and self._follows(at + 1) and (self._unknown(at) or self._is(at, "third", "vocative"))

    def _done(self, start: int) -> bool:
        """Whether what stands before a reference is done to things of the world: "binili ko na yung una"."""
        back = start - 1
        while back > max(start - 6, 0) and self._is(back, "speaker", "particle", "linker", "function", "actor"):
            back -= 1
        return self._is(back, "world")

    def _asked_of(self, at: int, head: str, position: int) -> bool:
        """Whether a copula asks for what follows it, "what was the first", or gives a rank, "he was the first"."""
        if self._is(at, "person"):
            return False  # we're the first
        if not self._follows(at) or self._is(at - 1, "question"):
            return True  # is the second one better?
        if self._is(at - 1, "person", "third", "this", "presenting", "modal"):
            return False
        if self._governed(at):
            return True  # what I meant is the second
        if head == "none" or (head == "one" and position == -1):
            return False
        return head == "turn" or not self._unknown(at - 1)

    def _opens(self, start: int, before: Determiner, head: Head) -> bool:
        """Whether what is counted only begins: "my first question is why", "second question: ...", "last one. ..."."""
        at = head.after
        new = before.sort == "none" and head.sort != "number"
        if new and self._next(at, "limit"):
            return True  # last question lang
        if not self._says_more(at, new=new):
            return False
        if self._next(at, "copula") and not self._is(at, "was") and at + 1 < len(self.words):
            own = new or head.sort == "number" or "mine" in (before.sort, head.whose)
            return own and (self.words[at + 1].broken or self._is(at + 1, "question", "about", "modal", "auxiliary"))
        if not self.words[at].broken:
            return False
        if ":" in self.words[at].gap:
            return before.sort in ("none", "mine") or (before.sort == "definite" and not self._follows(start))
        if not new or (head.sort == "one" and "." not in self.words[at].gap):
            return False
        while start > 0 and self._follows(start) and self._is(start - 1, *AROUND):
            start -= 1
        return not self._follows(start)

    def _says_more(self, at: int, *, new: bool) -> bool:
        """Whether what follows a place is more than what is said to the assistant about a turn."""
        rest = self.words[at : self._sentence(at).stop] if at < len(self.words) else []
        worldly = any(not each.kinds and each.entry.position is None for each in rest)
        if not rest or not new or not rest[0].broken:
            return worldly
        asked = any("request" in each.kinds and "auxiliary" not in each.kinds for each in rest)
        return not asked and (worldly or not all(each.kinds & (AROUND | {"in", "manner"}) for each in rest))
