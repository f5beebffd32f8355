"""Compare the manifests of two turns. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory import markup
from langchain_supabase_memory.operations.manifests.beginning import MOVES, Move
from langchain_supabase_memory.operations.manifests.parts import ManifestPart, ManifestPassage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_supabase_memory.operations.manifests.manifest import Manifest


@dataclass(frozen=True)
class PartDiff:
    """A part that was added, removed or changed.

    Attributes:
        name: The part's name.
        before: The part in the earlier pack; `None` if it was added.
        after: The part in the later pack; `None` if it was removed.
    """

    name: str
    before: ManifestPart | None
    after: ManifestPart | None

    @property
    def characters(self) -> int:
        """The growth in characters; below 0 if it shrank."""
        return (self.after.characters if self.after else 0) - (self.before.characters if self.before else 0)

    @property
    def tokens(self) -> int:
        """The growth in approximate tokens."""
        return (self.after.tokens if self.after else 0) - (self.before.tokens if self.before else 0)

    @property
    def change(self) -> str:
        """The difference apart from the size."""
        if self.before is None or self.after is None:
            return "came" if self.before is None else "went"
        pairs = ((name, getattr(self.before, name), getattr(self.after, name)) for name in _COMPARED)
        return "; ".join(f"{name} {before} → {after}" for name, before, after in pairs if before != after)

    def __str__(self) -> str:
        """Return the change as one line."""
        if self.before is None or self.after is None:
            return f"{self.name}: {self.change}, {abs(self.characters):,} characters"
        size = f"{self.characters:+,} characters, {self.tokens:+,} tokens"
        return f"{self.name}: {'; '.join(filter(None, (size, self.change)))}"


_COMPARED: Final = ("reason", "first", "last", "number")


@dataclass(frozen=True)
class ManifestDiff:
    """The differences between two packs; parts that are the same in both are left out.

    Attributes:
        parts: The parts that were added, removed or changed.
        items_came: Board items only in the later pack, by the prefixes of their ids.
        items_went: Board items only in the earlier pack.
        passages_came: Passages recalled only by the later pack.
        passages_went: Passages recalled only by the earlier pack.
        omitted_came: First, last and reason of each range that only the later pack omits.
        omitted_went: First, last and reason of each range that only the earlier pack omits.
        budget: The growth of the budget in its unit; `None` if the units differ.
        moved: Why the beginning of the later prompt is another; `None` if it is the same, and at most goes on.
    """

    parts: tuple[PartDiff, ...]
    items_came: tuple[str, ...]
    items_went: tuple[str, ...]
    passages_came: tuple[ManifestPassage, ...]
    passages_went: tuple[ManifestPassage, ...]
    omitted_came: tuple[tuple[int, int, str], ...]
    omitted_went: tuple[tuple[int, int, str], ...]
    budget: int | None
    moved: Move | None = None

    def __bool__(self) -> bool:
        """Return whether anything differs."""
        return bool(
            self.budget != 0 or any(getattr(self, name) for name in self.__dataclass_fields__ if name != "budget")
        )

    def _repr_html_(self) -> str:
        moved = [] if self.moved is None else [("beginning", f"moved: {MOVES[self.moved]}", None, None)]
        rows = [
            *moved,
            *((part.name, part.change, f"{part.characters:+,}", f"{part.tokens:+,}") for part in self.parts),
            *((name, said, None, None) for name, said in self._changes_by_name()),
        ]
        note = None if rows else "nothing differs"
        return markup.table("What differs", ("part", "how", "characters", "tokens"), rows, note=note)

    def _changes_by_name(self) -> Iterator[tuple[str, str]]:
        """Yield what else was added and removed, by name."""
        for name in ("items", "passages", "omitted"):
            came, went = len(getattr(self, f"{name}_came")), len(getattr(self, f"{name}_went"))
            if came or went:
                yield name, f"{came} came, {went} went"

    def __str__(self) -> str:
        """Return one line for each part, and one for each other kind of difference."""
        moved = [] if self.moved is None else [f"the beginning moved: {MOVES[self.moved]}"]
        lines = [*moved, *map(str, self.parts), *(f"{name}: {said}" for name, said in self._changes_by_name())]
        return "\n".join(lines) or "nothing"


def diff(earlier: Manifest, later: Manifest) -> ManifestDiff:
    """Return the differences between two manifests."""
    before, after = ({part.name: part for part in each.parts} for each in (earlier, later))
    names = [*after, *(name for name in before if name not in after)]
    parts = [PartDiff(name, before.get(name), after.get(name)) for name in names]
    places = [{(each.id, each.first, each.last, each.part): each for each in one.passages} for one in (earlier, later)]
    return ManifestDiff(
        parts=tuple(part for part in parts if part.before != part.after),
        items_came=tuple(each for each in later.items if each not in earlier.items),
        items_went=tuple(each for each in earlier.items if each not in later.items),
        passages_came=tuple(each for place, each in places[1].items() if place not in places[0]),
        passages_went=tuple(each for place, each in places[0].items() if place not in places[1]),
        omitted_came=tuple(each for each in later.omitted if each not in earlier.omitted),
        omitted_went=tuple(each for each in earlier.omitted if each not in later.omitted),
        budget=later.budget - earlier.budget if later.unit == earlier.unit else None,
        moved=later.beginning.moved_since(earlier.beginning),
    )
