"""A planted corpus: stretches of talk about known topics, each of other phrases. The same seed makes the same talk."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

PHRASES: Final = {
    "kidney care": (
        "my father starts dialysis in March; the nephrologist wants to see his creatinine again; the clinic moved"
        " the appointment about his kidneys; he may drink only a liter a day because of his renal failure; the"
        " fistula in his arm is swollen; a transplant list takes years; the nurse explained the low potassium"
        " diet; his blood pressure rises before each dialysis session; they took another urine sample; the"
        " hospital asks for his medication list; his potassium was too high on Monday; the donor tests begin in"
        " spring"
    ),
    "pottery": (
        "the glaze ran down the side of the bowl; my kiln reached cone six too early; the clay cracked while it"
        " dried; I want to throw taller cylinders on the wheel; the bisque firing left a gray ring; how thick"
        " should the slip be; the celadon came out milky; the studio shelf is full of mugs; trimming the foot of a"
        " plate goes wrong; a thermocouple in the kiln is broken; I mixed an ash glaze from oak; the porcelain"
        " warped at the rim"
    ),
    "taxes": (
        "the tax return is due at the end of May; can I deduct my home office; the revenue office sent a letter"
        " about my income; I lost the receipts for last year's expenses; quarterly payments confuse me; the"
        " accountant asks for form 1701; withholding was higher than the salary slip shows; is the bonus taxable;"
        " VAT on invoices abroad puzzles me; they want a penalty for late filing; my freelance income has two"
        " sources; the deduction for children changed"
    ),
    "marathon": (
        "I run forty kilometers a week before the marathon; my knee hurts after the long run; the half marathon"
        " is in October; which shoes suit a wide foot; my pace drops after kilometer thirty; the training plan"
        " asks for intervals; I cramped at the last race; carbo loading upset my stomach; should I taper for two"
        " weeks; my heart rate is high on easy runs; the coach wants hill sprints; I registered for the race in"
        " Berlin"
    ),
    "garden": (
        "the tomatoes have brown spots on their leaves; aphids eat my roses; when do I prune the apple tree; the"
        " compost smells of ammonia; seedlings on the balcony grew leggy; slugs destroyed the lettuce bed; I want"
        " a raised bed for carrots; the soil is heavy and wet; basil wilts in the greenhouse; mulch keeps the"
        " weeds away; the zucchini flowers fall off; which vegetables can be planted in August"
    ),
    "divorce": (
        "my lawyer wrote about custody of the children; we separated in January; alimony is calculated from his"
        " salary; the judge set a hearing about the divorce; who keeps the house after the marriage; the mediator"
        " proposes alternate weekends; my ex wife refuses to sign the agreement; the settlement names the pension;"
        " visitation on holidays is unclear; the court asks for our marriage certificate; he hides money from the"
        " attorney; the children want to stay with me"
    ),
    "guitar": (
        "barre chords hurt my fingers; the B string buzzes on the third fret; I practice fingerpicking with a"
        " metronome; the amplifier hums when it warms up; which strings suit a nylon guitar; the solo in A minor"
        " is too fast; my strumming sounds stiff; the band rehearses a blues song; tuning by ear takes me long; I"
        " broke a plectrum on stage; the capo sits on fret two; learning scales bores me"
    ),
    "database": (
        "the query scans the whole table without an index; a deadlock appeared in Postgres; the migration locks"
        " rows for minutes; how large may the connection pool be; vacuum runs all night; a join returns duplicate"
        " rows; the replica lags behind the primary; I partition the table by month; the transaction was rolled"
        " back; explain analyze shows a sequential scan; the foreign key slows each insert; a backup of the schema"
        " failed"
    ),
    "kitchen": (
        "the plumber comes to install the dishwasher; oak cabinets cost too much; we tile the wall behind the"
        " stove; the countertop has a crack; where should the sockets of the new kitchen go; the oven does not fit"
        " the gap; they delivered the wrong drawers; the contractor delays our renovation; a quartz worktop stains"
        " less; the sink drains slowly since the remodel; the floor under the fridge is uneven; lights below the"
        " cabinets flicker"
    ),
    "puppy": (
        "the puppy chews on every shoe; my dog pulls on the leash; the vet gave him a rabies vaccine; he barks"
        " when the bell rings; house training goes backwards; which kibble suits a labrador; he is afraid of other"
        " dogs in the park; the crate makes him whine at night; fleas came back after the walk; teaching him to"
        " sit took a day; the breeder sent his pedigree; his paws are sore from the snow"
    ),
    "mortgage": (
        "the bank offers a fixed rate for ten years; our mortgage application was refused; how much down payment"
        " do we need; the appraisal of the house came in low; closing costs surprise me; refinancing lowers the"
        " monthly installment; the lender asks for our credit score; interest rates rose again; the notary has the"
        " purchase contract; we bid on an apartment downtown; a second loan covers the repairs; the broker charges"
        " two percent"
    ),
    "japan": (
        "we fly to Osaka in April; the rail pass covers the bullet train; is a ryokan in Kyoto worth it; the"
        " cherry blossom starts early; I booked a capsule hotel in Tokyo; how much yen should I carry; the flight"
        " stops in Seoul; luggage forwarding to Hakone is cheap; which temples open at dawn; a pocket wifi at the"
        " airport helps; the itinerary has three nights in Hiroshima; sushi counters need reservations"
    ),
    "anxiety": (
        "I wake up at night with a racing heart; my therapist suggests breathing exercises; panic attacks come on"
        " the subway; meditation calms my worries; I feel tense before meetings; the psychologist talks about"
        " triggers; my fear of crowds grew; journaling about my mood relieves me; sleep is poor when I am nervous;"
        " a mild antidepressant was prescribed; the breathing app reminds me to relax; stress at work makes me"
        " shake"
    ),
    "bread": (
        "my sourdough starter smells of acetone; the crumb is dense and gummy; how long should the dough proof;"
        " rye flour needs more water; the crust turns too dark in the oven; I fold the dough each half hour; the"
        " loaf spread flat on the stone; yeast from the fridge is slow; a banneton sticks to wet dough; steam"
        " opens the scoring; I baked baguettes with poolish; the hydration is eighty percent"
    ),
    "car": (
        "the engine warning lamp stays on; brakes squeal in the morning; the mechanic wants to replace the"
        " alternator; my car loses coolant; the clutch slips uphill; winter tires are worn; the battery is dead"
        " after the weekend; an oil leak drips below the gearbox; the inspection found rust on the axle; the"
        " steering wheel vibrates at speed; the exhaust rattles; the garage charged me for spark plugs"
    ),
    "wedding": (
        "the florist needs our color by Friday; we invite eighty guests to the wedding; the caterer dropped the"
        " vegan menu; my bridesmaids want short dresses; the photographer is booked in June; seating my aunts is"
        " hard; the cake has four tiers; the venue asks for a deposit; our vows are too long; the groom's suit"
        " must be altered; the band plays until midnight; invitations go out next month"
    ),
    "chess": (
        "I lose to the Sicilian as White; the endgame with rook and pawn confuses me; my rating fell under 1500;"
        " castling early saved my king; he sacrificed a bishop on h7; the opening book says knight f3; I blundered"
        " my queen in blitz; a zugzwang decided the game; tactics puzzles about forks help me; the tournament has"
        " nine rounds; the clock ran out in a won position; my gambit was declined"
    ),
    "job": (
        "the recruiter invites me to a second interview; my resume has a gap of a year; how do I ask for a higher"
        " salary; the cover letter is too stiff; they gave the position to someone internal; my references live"
        " abroad; a headhunter wrote to me on LinkedIn; the assessment center lasts two days; notice at my"
        " employer is three months; the hiring manager did not answer; I got an offer from a startup; which"
        " strengths do I name"
    ),
    "photography": (
        "the sensor shows dust at small apertures; which lens suits portraits; long exposure of the waterfall"
        " blurred; my tripod shakes in wind; raw files fill the memory card; the flash reflects in her glasses;"
        " the histogram clips on the right; I edit the colors in Lightroom; autofocus hunts at dusk; a polarizing"
        " filter darkens the sky; prints look darker than my monitor; the shutter sticks in cold"
    ),
    "school": (
        "my daughter fails in algebra; the teacher complains about homework; parents' evening is on Thursday; he"
        " is bullied in fourth grade; which tutor explains fractions well; the report card came with a warning;"
        " the class goes on a trip to the museum; her essay about the novel is late; the exam covers geometry; the"
        " principal wants to meet us; the school bus skips our stop; pupils need a new calculator"
    ),
    "insurance": (
        "the insurer rejects my claim for water damage; the premium went up by a fifth; the policy excludes"
        " floods; the adjuster took pictures of the ceiling; I need proof of ownership for the stolen bike; the"
        " deductible is five hundred; liability cover ended in June; my claim number is missing; they pay the"
        " replacement value only; cancelling the policy takes a month; the burglary was reported to the police;"
        " the underwriter asks about smoke detectors"
    ),
    "language": (
        "German articles make no sense to me; I mix up ser and estar; my accent in French is strong; flashcards"
        " for vocabulary bore me; the subjunctive in Spanish is hard; I want a tandem partner for conversation;"
        " the listening exam at level B2 was fast; word order in subordinate clauses confuses me; I forget genders"
        " of nouns; pronunciation of nasal vowels is difficult; the grammar book has no answers; my tutor corrects"
        " each verb"
    ),
    "bees": (
        "the queen stopped laying eggs; mites are in the hive; I harvest honey in July; a swarm hangs in the"
        " cherry tree; the smoker went out during inspection; brood frames are empty; wasps rob my weak colony;"
        " sugar syrup feeds them in autumn; the beekeeper next door lost a hive; wax moths ate the combs; drones"
        " gather at noon; the nectar flow ended early"
    ),
    "telescope": (
        "Saturn's rings look blurred in my eyepiece; the mount drifts while I track; which night shows the meteor"
        " shower; light pollution hides the nebula; collimating the mirror takes an hour; I saw Jupiter's moons;"
        " the finder scope points elsewhere; dew covers the corrector plate; stacking frames of Andromeda failed;"
        " a comet passes near Vega; the dark site is two hours away; the solar filter has a scratch"
    ),
}
"""What is said about each topic."""

_ASKS: Final = (
    "Can you help me? {}.", "So, {}. What now?", "{}, and I do not know why.", "I have to tell you that {}.",
    "Again: {}.", "{}. Is that normal?", "Listen, {}.", "One more thing: {}.",
)  # fmt: skip
_ANSWERS: Final = (
    "I see that {}. Let us look at it together.", "That happens: {}. Try it step by step.", "So {}; tell me more.",
    "Since {}, I would wait a little.",
)  # fmt: skip


@dataclass(frozen=True)
class Talk:
    """A stretch of talk about one topic.

    Attributes:
        topic: The topic that was planted.
        messages: What was said, as role and text.
    """

    topic: str
    messages: tuple[tuple[str, str], ...]


def talks(each: int = 40, seed: int = 7, topics: tuple[str, ...] = tuple(PHRASES)) -> list[Talk]:
    """Return stretches of talk in a mixed order.

    Args:
        each: How many for each topic.
        seed: Chooses the phrases and the order.
        topics: The topics.
    """
    source = random.Random(seed)
    found = [Talk(topic, tuple(_messages(PHRASES[topic].split("; "), source))) for topic in topics for _ in range(each)]
    source.shuffle(found)
    return found


def _messages(phrases: list[str], source: random.Random) -> Iterator[tuple[str, str]]:
    first, second, third = source.sample(phrases, 3)
    yield "user", source.choice(_ASKS).format(first)
    yield "assistant", source.choice(_ANSWERS).format(second)
    yield "user", source.choice(_ASKS).format(third)


def adjusted_rand_index(found: list[object], planted: list[object]) -> float:
    """Return how far two partitions of the same things agree: 1 the same, about 0 by chance."""

    def pairs(number: int) -> float:
        return number * (number - 1) / 2

    def counts(*keys: list[object]) -> list[int]:
        seen: dict[tuple[object, ...], int] = {}
        for key in zip(*keys, strict=True):
            seen[key] = seen.get(key, 0) + 1
        return list(seen.values())

    both = sum(map(pairs, counts(found, planted)))
    one, other = sum(map(pairs, counts(found))), sum(map(pairs, counts(planted)))
    expected = one * other / pairs(len(found))
    return (both - expected) / ((one + other) / 2 - expected)
