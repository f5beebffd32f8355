"""Conversations to measure the price of prompts with: a user's and an assistant's text for each turn."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from itertools import count
from typing import Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langchain_supabase_memory.testing import transcript


@dataclass(frozen=True)
class Turn:
    """One turn.

    Attributes:
        user: What the user writes.
        assistant: What the assistant answers.
        expects: What a prompt must hold for the assistant to answer right; empty if nothing.
        calls: How many tools the assistant calls first, one after the other.
    """

    user: str
    assistant: str
    expects: str = ""
    calls: int = 0


_THEMES: Final = {
    "kiln": "The kiln climbs slowly, holds at the top for ten minutes, and cools overnight with the damper shut",
    "glaze": "A thin coat of celadon breaks over texture and pools in the carved lines of the bowl",
    "clay": "The stoneware body has fine grog and shrinks about twelve percent between wheel and shelf",
    "market": "The stall at the weekend market needs a gazebo, a float of coins and a card reader",
    "garden": "The tomatoes along the south wall want more water when the afternoons turn hot",
    "ferry": "The early boat is cheaper and far less crowded than the one that leaves at noon",
    "workshop": "The beginners learn pinching and coiling before any of them sits down at the wheel",
    "website": "The page of the shop wants shorter texts and larger photographs of the newest bowls",
}
FACTS: Final = (
    ("the code of the glaze cabinet", "4812"),
    ("the name of my sister's dog", "Bruno"),
    ("the width of the new shelf", "63 centimetres"),
    ("the day of the electrician's visit", "the 14th"),
    ("the supplier of the cobalt", "Harlow and Finch"),
    ("the password of the studio's network", "bluebowl77"),
    ("the cone for the celadon", "cone nine"),
    ("the price of the large vase", "185 euros"),
    ("the number of the ferry cabin", "C204"),
    ("the allergy of Tomas", "peanuts"),
    ("the title of the book I borrowed", "Clay Bodies of Kyushu"),
    ("the flight number to Osaka", "KL867"),
    ("the name of the new apprentice", "Ines Okafor"),
    ("the weight of the grog order", "40 kilos"),
    ("the date of the exhibition", "9 October"),
)
"""What is told once, and asked for a long time later."""

_TOLD_BEFORE: Final = 30
_ASKED_FROM: Final = 36


def sixty(*, asking: bool = False, sentences: int = 7) -> list[Turn]:
    """Sixty turns, in the first half of which fifteen facts are told, and asked for in the second.

    Half of the questions have no question mark.

    Args:
        asking: Whether the user asks something in every turn.
        sentences: The sentences of each answer.
    """
    draw, themes, made = random.Random(1), [*_THEMES], []
    for number in range(60):
        theme = draw.choice(themes)
        words = _THEMES[theme].split()
        draw.shuffle(words)
        said = f"Today I thought about the {theme} again. {_THEMES[theme]}, and I noted {draw.randint(2, 99)} points: "
        user = f"{said}{' '.join(words[:6])}."
        told = (
            f"For the {draw.choice(themes)}, {' '.join(draw.sample(_THEMES[draw.choice(themes)].split(), 8))} on day"
            f" {draw.randint(1, 400)}."
            for _ in range(sentences)
        )
        assistant, expects = " ".join(told), ""
        if number % 2 and number < _TOLD_BEFORE:
            what, value = FACTS[number // 2]
            user = f"By the way, {what} is {value}. {user}"
        asked = (number - _ASKED_FROM) * len(FACTS) // (60 - _ASKED_FROM)
        is_next = asked > (number - 1 - _ASKED_FROM) * len(FACTS) // (60 - _ASKED_FROM)
        if number >= _ASKED_FROM and is_next:
            what, expects = FACTS[asked]
            user = f"What was {what}?" if asked % 2 else f"Remind me of {what}"
            assistant = f"It is {expects}. {assistant[:300]}"
        elif asking:
            user = f"{user} What do you think of the {theme}?"
        made.append(Turn(user, assistant, expects))
    return made


def with_tools(talk: list[Turn], calls: int = 8) -> list[Turn]:
    """The same talk, in every sixth turn of which the assistant calls tools first."""
    return [replace(turn, calls=0 if number % 6 else calls) for number, turn in enumerate(talk)]


def demo() -> list[Turn]:
    """The talk of the demo: seven weeks of short messages."""
    said = [line.message for line in transcript.load()]
    return [
        Turn(said[at].text, said[at + 1].text)
        for at in range(len(said) - 1)
        if said[at].type == "human" and said[at + 1].type == "ai"
    ]


def history(messages: int) -> list[BaseMessage]:
    """The first messages of a long talk, without ids: the demo's, with two of its other answers behind each answer.

    Beyond the demo's end its turns come again in other orders, two users' texts joined, so that words stay as frequent
    as in the demo. An odd number begins with an assistant's message.
    """
    draw, said, turns = random.Random(5), list[BaseMessage](), demo()
    for lap in count():
        for turn in turns if lap == 0 else draw.sample(turns, len(turns)):
            user = turn.user if lap == 0 else f"{turn.user}. {draw.choice(turns).user}"
            assistant = " ".join([turn.assistant, *(each.assistant for each in draw.sample(turns, 2))])
            said += [HumanMessage(user), AIMessage(assistant)]
            if len(said) > messages:
                return said[messages % 2 :][:messages]
    raise AssertionError
