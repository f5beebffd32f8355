"""Why messages are not shown whole in a pack, and not covered by the summary it shows."""

from __future__ import annotations

from typing import Final

BEYOND: Final = "beyond the budget"
TOO_MANY: Final = "beyond max_messages"
CUT: Final = "cut to fit the budget"
EXPIRES_SOON: Final = "they expire next, and leave the prompt in steps"
NO_ROOM: Final = "the budget has no room for their summary"
FOR_RECALLED: Final = "what is recalled for the question takes their room, in this turn alone"
LEFT_TO_RECALL: Final = "summarized in quotes, which recall finds where they are asked for"
SUPERSEDED: Final = "not on this branch of the graph"
UNREADABLE: Final = "it cannot be read"
MEDIA: Final = "some of its images and files are beyond the budget's media"
LEFT_OUT: Final = frozenset({BEYOND, TOO_MANY, CUT, EXPIRES_SOON})
"""The reasons for which a summary is made, which covers such messages."""

BY_NUMBER: Final = frozenset({TOO_MANY, EXPIRES_SOON})
"""Those of them that have nothing to do with the size of messages."""
