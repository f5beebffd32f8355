"""The words around what people say of themselves: the `profile.toml` of every language, read once, all used together.

A file has the lists of `[marks]`, which decide whether a sentence counts, of `[words]`, which bound a value, of
`[frames]`, which come before a value, of `[values]`, which are known values, and of `[topics]`, each with the words
that are its values. Phrases are compared as `spelling` defines. Taglish needs no file: all languages are used at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.language.extractive.phrases import Phrases
from langchain_supabase_memory.language.lexicon import (
    languages,
    load,
    load_once,
    merge_entries,
    multi_word,
    single_word,
    table_words,
)
from langchain_supabase_memory.language.spelling import comparison_form

if TYPE_CHECKING:
    from langchain_supabase_memory.language.lexicon import Tables

MARKS: Final = {
    "lasting": "says that something holds for good: from now on, always",
    "once": "says that it holds this time: for now, this email",
    "supposes": "says that it need not be so: if, maybe, I wish",
    "pretends": "begins a game or an example, to the end of the message: imagine, role-play",
    "reports": "introduces what somebody else says: she said, translate",
    "pastes": "begins work on somebody's text, to the end of the message: proofread, the following",
    "sarcastic": "marks irony: yeah right",
    "denies": "takes back what follows: you don't have to, I don't mind",
    "corrects": "says that an earlier statement does not hold: actually, no longer",
    "insists": "repeats an earlier wish: I said",
    "polite": "looks like `supposes` and is not: if possible",
    "conditions": "begins a condition: when, whenever",
    "asks": "makes its clause a question: ba",
    "opens_question": "the first word of a question that ends in a question mark: do, what",
    "introduces": "before a colon, introduces the speaker's own words: about me",
}
"""The lists of `[marks]`, each with its meaning and examples."""

WORDS: Final = {
    "leads": "may stand before a frame: please, by the way",
    "fills": "is passed over: really, po",
    "splits": "begins a clause: but, because",
    "joins": "begins a clause if a frame follows: and",
    "articles": "is no part of a value at its start: the, ang",
    "cuts": "ends a value: when, every",
    "places": "ends the thing that a value is about: (flights) in (the morning)",
    "tails": "is no part of a value at its end: please, too",
    "points": "makes a value one of the moment: this, the second option",
    "over": "before what is liked less: over, kaysa sa",
    "copulas": "between a thing and its value: is, ay",
    "negates": "before what is not wanted: don't, huwag",
    "stops": "of `negates`, ends something: stop, quit",
    "subjects": "is no first word of an instruction: she, the",
    "persons": "somebody else, as the subject of a clause: she, our",
    "imperatives": "the first word of an instruction: use, answer",
    "drops": "is no part of a subject: your, the",
    "not_names": "is nobody's name: (call me) later",
    "not_habits": "tells no habit: (I always) wondered",
}
"""The lists of `[words]`, each with its meaning and examples."""

FRAMES: Final = {
    "name": "my name is",
    "name_after": "behind the name",
    "home": "I live in",
    "home_after": "behind the home",
    "home_ended": "I no longer live in",
    "hometown": "I'm from",
    "job": "I work as",
    "employer": "I work for",
    "school": "I study at",
    "studies": "I study",
    "birthday": "my birthday is",
    "languages": "I speak",
    "pronouns": "my pronouns are",
    "time_zone": "my time zone is",
    "marital": "I'm married to",
    "email": "my email is",
    "phone": "my phone number is",
    "car": "I drive a",
    "phone_model": "my phone is a",
    "is": "before one of `[values]`: I'm",
    "is_not": "I'm no longer",
    "likes": "I like",
    "dislikes": "I hate",
    "wants": "a wish of the moment, unless a mark says more: I want",
    "prefers": "I prefer",
    "allergy": "I'm allergic to",
    "allergy_ended": "I'm not allergic to",
    "cannot": "I don't eat",
    "can": "I eat",
    "habit": "I usually",
    "never_habit": "I never",
    "not_habit": "before one of `values.doing`: I don't",
    "uses": "before a value of a topic: I use",
    "favorite": "before a kind of thing: my favorite",
    "favorite_after": "between a value and a kind of thing: ang paborito kong",
}
"""The lists of `[frames]`, each with an example."""

VALUES: Final = {
    "diet": "vegan",
    "condition": "lactose intolerant, left-handed",
    "marital": "married",
    "occupation": "nurse",
    "age": "behind a number: years old",
    "doing": "smoke, drive",
    "answers": "what an assistant writes: answers, replies",
    "allergen": "behind what somebody is allergic to: allergy",
}
"""The lists of `[values]`, each with an example."""

TOPICS: Final = (
    "answer length", "tone", "answer format", "answer language", "units", "time format", "date format", "currency",
    "emoji", "programming language",
)  # fmt: skip
"""The lists of `[topics]`: subjects of an assistant's answers, each with its values."""

OF_ANSWERS: Final = frozenset({"answer length", "tone", "answer language"})
"""Topics whose values need a word of `values.answers` beside them, outside of an instruction: "a short walk"."""

TABLES: Final[Tables] = {"marks": MARKS, "words": WORDS, "frames": FRAMES, "values": VALUES, "topics": TOPICS}


@load_once
def profile_phrases() -> Phrases:
    """Return the phrases of all languages, each with its lists as `marks.once`, loaded on first use."""
    files = [load("profile", language, TABLES) for language in languages("profile")]
    known = merge_entries(
        (comparison_form(text), frozenset({f"{name}.{kind}"}))
        for file in files
        for name, table in file.items()
        for kind, text in table_words(table)
    )
    opening = merge_entries(((words[0],), kinds) for words, kinds in known.items())
    return Phrases(single_word(known), multi_word(known), single_word(opening))
