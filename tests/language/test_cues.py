"""Query hints and marks: what a question names and asks for, and what a text may answer, in eight languages at once.

Every table includes look-alikes: words that are a month, a name or a number in one language or position only.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Literal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from langchain_supabase_memory.language.lexicon import languages, load
from langchain_supabase_memory.language.query_hints import (
    Days,
    Marks,
    NamedDate,
    QueryHints,
    find_hints,
    marks,
    relative_days,
    without,
)
from langchain_supabase_memory.language.query_hints.lexicon import TABLES
from langchain_supabase_memory.language.spelling import key
from tests.each_case import each_case

NOW = datetime(2023, 11, 15, 12, tzinfo=UTC)  # a Wednesday


def day(year: int | None, month: int | None = None, at: int | None = None) -> NamedDate:
    return NamedDate(year, month, at)


def weekday(number: int) -> NamedDate:
    return NamedDate(weekday=number)


NAMES: list[tuple[str, tuple[str, ...]]] = [
    ("When did Melanie paint a sunrise?", ("Melanie",)),
    ("What is Caroline's identity?", ("Caroline",)),
    ("What is Caroline\u2019s identity?", ("Caroline",)),
    ("What did James' dog eat?", ("James",)),
    ("Caroline said what?", ("Caroline",)),
    ("Caroline's dog is how old?", ("Caroline",)),
    ("What did Mary Ann buy?", ("Mary", "Ann")),
    ("Where does Anne-Marie's aunt live?", ("Anne-Marie",)),
    ("Did O'Brien call?", ("O'Brien",)),
    ("Would Tim, John, Sam or Evan come?", ("Tim", "John", "Sam")),
    ("Did Tim tell Tim?", ("Tim",)),
    ("Was hat Jürgen gesagt?", ("Jürgen",)),
    ("Quand est-ce que Zoé est partie ?", ("Zoé",)),
    ("Quel est l'avis d'Anna ?", ("Anna",)),
    ("¿Qué dijo Íñigo?", ("Íñigo",)),
    ("Когда приехала Мария?", ("Когда", "Мария")),
    ("Πού πήγε η Ελένη;", ("Πού", "Ελένη")),
    ("Kailan umuwi si Ana?", ("Ana",)),
    ("Ano ang sabi ni Jun kahapon?", ("Jun",)),
    ("Saan nagpunta si Kuya Boy?", ("Kuya", "Boy")),
    ("Did Will call back?", ("Will",)),
    ("Dove abita Marco?", ("Marco",)),
    ("Did Kay or Nina call?", ("Kay", "Nina")),
    ("What does Dr. Reyes say?", ("Reyes",)),
    ("Tokyo-based Ken asked", ("Tokyo", "Ken")),
    ("¿Cuándo llamó Julio?", ("Julio",)),
    ("What did Zoe\u0308 say?", ("Zoë",)),
]
NO_NAMES = [
    "when did melanie paint?", "What did you say?", "Will it rain?", "May I ask something?", "Tell me about it",
    "How many people came in March?", "Did it happen on Monday?", "What's the plan?", "Who's there?", "It's fine.",
    "Don't do that", "I'm sure I said so", "WHAT DID HE SAY", "Is UNESCOX big?", "Ano ang plano?", "Si nanay ba?",
    "Kailan pa?", "¿Qué día es hoy?", "Wann war das?", "Quand ?", "Quando?", "Kapan?", "Did he read \"The Four Winds\"?",
    "Is English hard?", "What happened at Christmas?", "Recommend a movie", "Yesterday was fun", "Kahapon ba?", "", "?",
    "Was it Julio 7?", "What about the year 2023 in August?", "Is X here?", "Summarize our chat. Remember it.",
]  # fmt: skip


@each_case(("question", "expected"), NAMES)
def test_names_are_found(question: str, expected: tuple[str, ...]) -> None:
    assert find_hints(question, NOW).names == expected


@each_case("question", NO_NAMES)
def test_other_words_with_a_capital_are_no_names(question: str) -> None:
    assert find_hints(question, NOW).names == ()


DATES: list[tuple[str, tuple[NamedDate, ...]]] = [
    ("What did I do on 7 May 2023?", (day(2023, 5, 7),)),
    ("on May 7, 2023?", (day(2023, 5, 7),)),
    ("on May 7th 2023", (day(2023, 5, 7),)),
    ("on the 7th of May", (day(None, 5, 7),)),
    ("on 1 February, 2023?", (day(2023, 2, 1),)),
    ("on December 1,2023 taken", (day(2023, 12, 1),)),
    ("In May 2023", (day(2023, 5),)),
    ("in may", (day(None, 5),)),
    ("on may 5?", (day(None, 5, 5),)),
    ("we met may 5th", (day(None, 5, 5),)),
    ("was it may 2023", (day(2023, 5),)),
    ("Was that in March?", (day(None, 3),)),
    ("Did she marry last May?", (day(2023, 5),)),
    ("in mid-August 2023", (day(2023, 8),)),
    ("on Aug 15th", (day(None, 8, 15),)),
    ("by dec 24", (day(None, 12, 24),)),
    ("in 2023", (day(2023),)),
    ("in 2016?", (day(2016),)),
    ("spring water in 2021", (day(2021),)),
    ("on 2023-05-07", (day(2023, 5, 7),)),
    ("on 2023/5/7", (day(2023, 5, 7),)),
    ("on 27/5/2023", (day(2023, 5, 27),)),
    ("on 5/27/2023", (day(2023, 5, 27),)),
    ("on 5/5/2023", (day(2023, 5, 5),)),
    ("am 7.5.2023", (day(2023, 5, 7),)),
    ("on 5/27/23", (day(2023, 5, 27),)),
    ("What did I say yesterday?", (day(2023, 11, 14),)),
    ("the day before yesterday", (day(2023, 11, 13),)),
    ("today", (day(2023, 11, 15),)),
    ("last night", (day(2023, 11, 14),)),
    ("last Tuesday", (day(2023, 11, 14),)),
    ("last Wednesday", (day(2023, 11, 8),)),
    ("next Friday", (day(2023, 11, 17),)),
    ("on Tuesday", (weekday(2),)),
    ("on tue or on sat", (weekday(2), weekday(6))),
    ("two days ago", (day(2023, 11, 13),)),
    ("a year ago", (day(2022),)),
    ("3 months ago", (day(2023, 8),)),
    ("last month", (day(2023, 10),)),
    ("last year", (day(2022),)),
    ("the year before last", (day(2021),)),
    ("vorletzten Monat", (day(2023, 9),)),
    ("this year", (day(2023),)),
    ("last December", (day(2022, 12),)),
    ("next March", (day(2024, 3),)),
    ("in March last year", (day(2022, 3),)),
    ("in March of this year", (day(2023, 3),)),
    ("Tuesday, 5 May 2020", (day(2020, 5, 5),)),
    ("on Sunday, 7 May", (NamedDate(None, 5, 7, 7),)),
    ("on the Sunday before October 25, 2022", (day(2022, 10, 23), day(2022, 10, 25))),
    ("on August 11 and August 15 2023", (day(None, 8, 11), day(2023, 8, 15))),
    ("on 3 and 9 May", (day(None, 5, 9),)),
    ("May 3 to 9 pm", (day(None, 5, 3),)),
    ("between May 3 and 9 pm", (day(None, 5, 3),)),
    ("the first week of May", (day(None, 5),)),
    ("in the last week of May", (day(None, 5),)),
    ("Monday to Friday", (weekday(1), weekday(5))),
    ("before I moved in May", (day(None, 5),)),
    ("Did sales fall in 2020?", (day(2020),)),
    ("What was real estate in 2020?", (day(2020),)),
    ("since 7 November until 7 November", (day(2023, 11, 7),)),
    ("kahapon", (day(2023, 11, 14),)),
    ("kagabi ba yun?", (day(2023, 11, 14),)),
    ("noong isang araw", (day(2023, 11, 13),)),
    ("noong Lunes", (day(2023, 11, 13),)),
    ("nung linggo", (day(2023, 11, 12),)),
    ("nakaraang Biyernes", (day(2023, 11, 10),)),
    ("noong nakaraang buwan", (day(2023, 10),)),
    ("noong isang taon", (day(2022),)),
    ("noong Mayo", (day(None, 5),)),
    ("noong ika-7 ng Mayo 2023", (day(2023, 5, 7),)),
    ("Mayo 7, 2023", (day(2023, 5, 7),)),
    ("tatlong araw na ang nakalipas", (day(2023, 11, 12),)),
    ("2 days ago lang yun", (day(2023, 11, 13),)),
    ("el 7 de mayo de 2023", (day(2023, 5, 7),)),
    ("el lunes pasado", (day(2023, 11, 13),)),
    ("¿qué hice hoy?", (day(2023, 11, 15),)),
    ("hace dos días", (day(2023, 11, 13),)),
    ("anteayer", (day(2023, 11, 13),)),
    ("el mes pasado", (day(2023, 10),)),
    ("le 1er mars 2023", (day(2023, 3, 1),)),
    ("en mars", (day(None, 3),)),
    ("il y a deux jours", (day(2023, 11, 13),)),
    ("aujourd'hui", (day(2023, 11, 15),)),
    ("qu'est-ce que j'ai fait hier soir ?", (day(2023, 11, 14),)),
    ("lundi dernier", (day(2023, 11, 13),)),
    ("am 7. Mai 2023", (day(2023, 5, 7),)),
    ("im Mai", (day(None, 5),)),
    ("vor zwei Tagen", (day(2023, 11, 13),)),
    ("letzten Montag", (day(2023, 11, 13),)),
    ("gestern", (day(2023, 11, 14),)),
    ("7 de março de 2023", (day(2023, 3, 7),)),
    ("na segunda-feira", (weekday(1),)),
    ("ontem", (day(2023, 11, 14),)),
    ("il 7 maggio 2023", (day(2023, 5, 7),)),
    ("lunedì scorso", (day(2023, 11, 13),)),
    ("tre giorni fa", (day(2023, 11, 12),)),
    ("7 Mei 2023", (day(2023, 5, 7),)),
    ("dua hari yang lalu", (day(2023, 11, 13),)),
    ("kemarin", (day(2023, 11, 14),)),
    ("bulan lalu", (day(2023, 10),)),
]
NO_DATES = [
    "may 5 anak ako", "Ilan ang may 5 anak?", "May 3 aso ako", "You may ask me", "May I?", "sa may kanto",
    "they march 8 km", "a march for peace", "on 5/7/2023", "on 05-07-2023", "version 1.2.3", "give me 2023 reasons",
    "I paid $2000", "it cost 1999.95", "room 101", "the second one", "give me a second", "life on Mars", "a mars bar",
    "with mayo please", "Was ist hier?", "hier ist es", "non ho mai detto", "the sun is out", "she sat down", "we wed",
    "isang beses sa isang linggo pa", "some time ago", "every summer", "on weekends", "a weekend in Rome", "I love spring",
    "he will fall", "whose estate is it", "every week", "in the last few days", "the last three months of 2022",
    "since I was five", "from 9 to 5", "before 31 February", "between 3 and 9 people", "3-9", "this is the last",
    "I have been to many", "J'ai été malade", "in the last chapter", "the past is the past", "sa loob ng bahay",
    "at 10:30", "5 pm", "1/2 cup", "call 555-2023", "31 February 2023", "day by day", "this one", "the last one",
    "Did Julio call?", "Jan and Jun came", "Dec the halls", "1,2023 items", "2023%", "99/99/2023",
    "the year of the dragon", "last but not least", "ha dito", "Hoy, kumusta?", "Dove abita Marco?", "he ate 2000 of them",
]  # fmt: skip


@each_case(("question", "expected"), DATES)
def test_dates_are_found(question: str, expected: tuple[NamedDate, ...]) -> None:
    assert find_hints(question, NOW).dates == expected
    assert marks(question).has_time


@each_case("question", NO_DATES)
def test_what_looks_like_a_date_is_none(question: str) -> None:
    assert find_hints(question, NOW).dates == ()


# On a Wednesday in November.
SPANS: list[tuple[str, str | None, str | None]] = [
    ("last week", "2023-11-06", "2023-11-12"),
    ("this week", "2023-11-13", "2023-11-19"),
    ("next week", "2023-11-20", "2023-11-26"),
    ("two weeks ago", "2023-10-30", "2023-11-05"),
    ("the last weekend", "2023-11-11", "2023-11-12"),
    ("this weekend", "2023-11-18", "2023-11-19"),
    ("two weekends ago", "2023-11-04", "2023-11-05"),
    ("the week before last", "2023-10-30", "2023-11-05"),
    ("the weekend before last", "2023-11-04", "2023-11-05"),
    ("vorletzte Woche", "2023-10-30", "2023-11-05"),
    ("la semana antepasada", "2023-10-30", "2023-11-05"),
    ("el pasado fin de semana", "2023-11-11", "2023-11-12"),
    ("l'avant-dernière semaine", "2023-10-30", "2023-11-05"),
    ("semana retrasada", "2023-10-30", "2023-11-05"),
    ("pekan lalu", "2023-11-06", "2023-11-12"),
    ("on the weekend", "2023-11-11", "2023-11-12"),
    ("since the weekend", "2023-11-11", "2023-11-15"),
    ("in spring", "2023-03-01", "2023-05-31"),
    ("in the fall", "2023-09-01", "2023-11-30"),
    ("last summer", "2023-06-01", "2023-08-31"),
    ("last autumn", "2022-09-01", "2022-11-30"),
    ("this winter", "2023-12-01", "2024-02-29"),
    ("next spring", "2024-03-01", "2024-05-31"),
    ("summer 2021", "2021-06-01", "2021-08-31"),
    ("summer of 2023", "2023-06-01", "2023-08-31"),
    ("winter 2023", "2023-12-01", "2024-02-29"),
    ("the winter of last year", "2022-12-01", "2023-02-28"),
    ("before summer", None, "2023-05-31"),
    ("between spring and autumn 2023", "2023-03-01", "2023-11-30"),
    ("since Wednesday", "2023-11-08", "2023-11-15"),
    ("since May 3", "2023-05-03", "2023-11-15"),
    ("since December", "2022-12-01", "2023-11-15"),
    ("since 2016", "2016-01-01", "2023-11-15"),
    ("since last week", "2023-11-06", "2023-11-15"),
    ("since 29 February", "2020-02-29", "2023-11-15"),
    ("since next Monday", "2023-11-20", None),
    ("in the last three days", "2023-11-12", "2023-11-15"),
    ("the past two weeks", "2023-11-01", "2023-11-15"),
    ("in the past month", "2023-10-15", "2023-11-15"),
    ("over the last year", "2022-11-15", "2023-11-15"),
    ("before March", None, "2023-02-28"),
    ("before 3 May 1969", None, "1969-05-02"),
    ("until dec 24", None, "2022-12-24"),
    ("until yesterday", None, "2023-11-14"),
    ("after 3 May 2039", "2039-05-04", None),
    ("between 3 and 9 May", "2023-05-03", "2023-05-09"),
    ("between the 3rd and the 9th of May 2041", "2041-05-03", "2041-05-09"),
    ("May 3-9, 1951", "1951-05-03", "1951-05-09"),
    ("3 to 9 May", "2023-05-03", "2023-05-09"),
    ("from May 3 to 9", "2023-05-03", "2023-05-09"),
    ("from December 28 to January 3", "2022-12-28", "2023-01-03"),
    ("between 2023-05-03 and 2023-05-09", "2023-05-03", "2023-05-09"),
    ("from March 2022 until yesterday", "2022-03-01", "2023-11-14"),
    ("from 2019 to 2021", "2019-01-01", "2021-12-31"),
    ("between August 11 and August 15 2023", "2023-08-11", "2023-08-15"),
    ("vor zwei Wochen", "2023-10-30", "2023-11-05"),
    ("in den letzten drei Tagen", "2023-11-12", "2023-11-15"),
    ("am Wochenende", "2023-11-11", "2023-11-12"),
    ("im Sommer 2022", "2022-06-01", "2022-08-31"),
    ("seit zwei Wochen", "2023-11-01", "2023-11-15"),
    ("vor dem 3. Mai", None, "2023-05-02"),
    ("vom 3. bis 9. Mai 2022", "2022-05-03", "2022-05-09"),
    ("von Montag bis Mittwoch", "2023-11-13", "2023-11-15"),
    ("hace dos semanas", "2023-10-30", "2023-11-05"),
    ("las dos últimas semanas", "2023-11-01", "2023-11-15"),
    ("desde el lunes", "2023-11-13", "2023-11-15"),
    ("antes de mayo", None, "2023-04-30"),
    ("del 3 al 9 de mayo de 2022", "2022-05-03", "2022-05-09"),
    ("el verano del año pasado", "2022-06-01", "2022-08-31"),
    ("il y a deux semaines", "2023-10-30", "2023-11-05"),
    ("les trois derniers jours", "2023-11-12", "2023-11-15"),
    ("depuis deux semaines", "2023-11-01", "2023-11-15"),
    ("le week-end dernier", "2023-11-11", "2023-11-12"),
    ("avant mars", None, "2023-02-28"),
    ("l'été dernier", "2023-06-01", "2023-08-31"),
    ("entre le 3 et le 9 mai", "2023-05-03", "2023-05-09"),
    ("due settimane fa", "2023-10-30", "2023-11-05"),
    ("gli ultimi due giorni", "2023-11-13", "2023-11-15"),
    ("prima del 3 maggio", None, "2023-05-02"),
    ("fino a marzo", None, "2023-03-31"),
    ("dal 3 al 9 maggio 2022", "2022-05-03", "2022-05-09"),
    ("d'inverno", "2022-12-01", "2023-02-28"),
    ("há duas semanas", "2023-10-30", "2023-11-05"),
    ("no fim de semana", "2023-11-11", "2023-11-12"),
    ("nos últimos três dias", "2023-11-12", "2023-11-15"),
    ("antes de março", None, "2023-02-28"),
    ("até ontem", None, "2023-11-14"),
    ("de 3 a 9 de maio de 2022", "2022-05-03", "2022-05-09"),
    ("dua minggu lalu", "2023-10-30", "2023-11-05"),
    ("minggu kemarin", "2023-11-06", "2023-11-12"),
    ("tiga hari terakhir", "2023-11-12", "2023-11-15"),
    ("sebelum tanggal 3 Mei", None, "2023-05-02"),
    ("dari tanggal 3 sampai 9 Mei 2022", "2022-05-03", "2022-05-09"),
    ("musim panas tahun lalu", "2022-06-01", "2022-08-31"),
    ("noong isang linggo", "2023-11-06", "2023-11-12"),
    ("dalawang linggo na ang nakalipas", "2023-10-30", "2023-11-05"),
    ("nitong nakaraang tatlong araw", "2023-11-12", "2023-11-15"),
    ("bago mag-Marso", None, "2023-02-28"),
    ("hanggang kahapon", None, "2023-11-14"),
    ("sa pagitan ng ika-3 at ika-9 ng Mayo", "2023-05-03", "2023-05-09"),
    ("noong taglamig", "2022-12-01", "2023-02-28"),
    ("noong summer", "2023-06-01", "2023-08-31"),
]
# On a Monday in April: whole questions.
MONDAY = datetime(2024, 4, 8, 9, tzinfo=UTC)
QUESTIONS_OF_DAYS: list[tuple[str, str | None, str | None]] = [
    ("What did we talk about last week?", "2024-04-01", "2024-04-07"),
    ("Did I mention any appointments this week?", "2024-04-08", "2024-04-14"),
    ("What was I stressed about three weeks ago?", "2024-03-18", "2024-03-24"),
    ("Where did I go last weekend?", "2024-04-06", "2024-04-07"),
    ("What are my plans for this weekend?", "2024-04-13", "2024-04-14"),
    ("How was my trip two weekends ago?", "2024-03-30", "2024-03-31"),
    ("What did Maya cook over the weekend?", "2024-04-06", "2024-04-07"),
    ("What did I plant in spring?", "2024-03-01", "2024-05-31"),
    ("Which lake did we swim in last summer?", "2023-06-01", "2023-08-31"),
    ("What did I read in the winter?", "2023-12-01", "2024-02-29"),
    ("Who visited us in the summer of 2022?", "2022-06-01", "2022-08-31"),
    ("What happened in autumn 2021?", "2021-09-01", "2021-11-30"),
    ("Where did I ski last winter?", "2023-12-01", "2024-02-29"),
    ("What did I promise since Friday?", "2024-04-05", "2024-04-08"),
    ("What have I spent since March 20?", "2024-03-20", "2024-04-08"),
    ("How much did I run since February?", "2024-02-01", "2024-04-08"),
    ("What did I eat in the last four days?", "2024-04-04", "2024-04-08"),
    ("What bugs did I report over the past three weeks?", "2024-03-18", "2024-04-08"),
    ("What have I learned during the last 2 months?", "2024-02-08", "2024-04-08"),
    ("Which movies did I watch in the past week?", "2024-04-01", "2024-04-08"),
    ("What did I tell you before February?", None, "2024-01-31"),
    ("Was I sick before January 15, 2024?", None, "2024-01-14"),
    ("What had I decided until last Thursday?", None, "2024-04-04"),
    ("What did I write between 10 and 14 March?", "2024-03-10", "2024-03-14"),
    ("What did I do from March 28 to April 2?", "2024-03-28", "2024-04-02"),
    ("Which runs did I log between Tuesday and Thursday?", "2024-04-02", "2024-04-04"),
    ("What did I say between January and February this year?", "2024-01-01", "2024-02-29"),
    ("Did I travel between June 3rd and June 9th, 2023?", "2023-06-03", "2023-06-09"),
    ("What changed after April 2?", "2024-04-03", "2024-04-08"),
    ("Which books did I finish in the previous six months?", "2023-10-08", "2024-04-08"),
    ("Was habe ich letzte Woche eingekauft?", "2024-04-01", "2024-04-07"),
    ("Was habe ich seit Freitag gegessen?", "2024-04-05", "2024-04-08"),
    ("Wo war ich zwischen dem 10. und 14. März?", "2024-03-10", "2024-03-14"),
    ("¿Qué compré la semana pasada?", "2024-04-01", "2024-04-07"),
    ("¿Dónde estuve el fin de semana pasado?", "2024-04-06", "2024-04-07"),
    ("¿Qué dije en los últimos cuatro días?", "2024-04-04", "2024-04-08"),
    ("Qu'est-ce que j'ai acheté la semaine dernière ?", "2024-04-01", "2024-04-07"),
    ("Qu'ai-je mangé depuis vendredi ?", "2024-04-05", "2024-04-08"),
    ("Où étais-je du 10 au 14 mars ?", "2024-03-10", "2024-03-14"),
    ("Che cosa ho comprato la settimana scorsa?", "2024-04-01", "2024-04-07"),
    ("Cosa ho mangiato da venerdì?", "2024-04-05", "2024-04-08"),
    ("Dove sono andato l'estate scorsa?", "2023-06-01", "2023-08-31"),
    ("O que comprei na semana passada?", "2024-04-01", "2024-04-07"),
    ("O que eu comi desde sexta-feira?", "2024-04-05", "2024-04-08"),
    ("Onde estive no verão passado?", "2023-06-01", "2023-08-31"),
    ("Apa yang saya beli minggu lalu?", "2024-04-01", "2024-04-07"),
    ("Apa yang saya makan sejak Jumat?", "2024-04-05", "2024-04-08"),
    ("Ke mana saya pergi akhir pekan lalu?", "2024-04-06", "2024-04-07"),
    ("Ano ang binili ko noong nakaraang linggo?", "2024-04-01", "2024-04-07"),
    ("Ano ang kinain ko mula noong Biyernes?", "2024-04-05", "2024-04-08"),
    ("Ano ang sinabi ko nitong nakaraang apat na araw?", "2024-04-04", "2024-04-08"),
]


def span(first: str | None, last: str | None) -> NamedDate:
    ends = [date.fromisoformat(each) if each is not None else None for each in (first, last)]
    return NamedDate(first=ends[0], last=ends[1])


@each_case(("question", "first", "last"), SPANS)
def test_spans_of_days_are_found(question: str, first: str | None, last: str | None) -> None:
    assert find_hints(question, NOW).dates == (span(first, last),)
    assert marks(question).has_time


@each_case(("question", "first", "last"), QUESTIONS_OF_DAYS)
def test_spans_are_found_in_whole_questions(question: str, first: str | None, last: str | None) -> None:
    assert find_hints(question, MONDAY).dates == (span(first, last),)


def test_a_span_of_one_day_is_that_day() -> None:
    assert find_hints("until yesterday and since yesterday", datetime(2023, 11, 14, tzinfo=UTC)).dates == (
        span(None, "2023-11-13"),
        span("2023-11-13", "2023-11-14"),
    )
    assert find_hints("since today", NOW).dates == (day(2023, 11, 15),)
    assert find_hints("between 7 May 2023 and 7 May 2023", NOW).dates == (day(2023, 5, 7),)


WEEKENDS = [  # the day, the last weekend's Saturday, this weekend's
    ("2023-11-10", "2023-11-04", "2023-11-11"),
    ("2023-11-11", "2023-11-04", "2023-11-11"),
    ("2023-11-12", "2023-11-04", "2023-11-11"),
    ("2023-11-13", "2023-11-11", "2023-11-18"),
]


@each_case(("today", "last", "this"), WEEKENDS)
def test_the_last_weekend_is_over(today: str, last: str, this: str) -> None:
    now = datetime.fromisoformat(today).replace(tzinfo=UTC)
    for question, saturday in (("last weekend", last), ("this weekend", this)):
        sunday = date.fromisoformat(saturday) + timedelta(days=1)
        assert find_hints(question, now).dates == (span(saturday, sunday.isoformat()),)


def test_the_week_is_the_askers() -> None:
    late = datetime(2023, 11, 12, 23, 30, tzinfo=UTC)  # a Sunday, and Monday in Manila
    manila = late.astimezone(timezone(timedelta(hours=8)))
    assert find_hints("this week", late).dates == (span("2023-11-06", "2023-11-12"),)
    assert find_hints("this week", manila).dates == (span("2023-11-13", "2023-11-19"),)


ORDERS: list[tuple[str, Literal["first", "last"] | None]] = [
    ("What was the first thing I said?", "first"),
    ("When did I first mention Tokyo?", "first"),
    ("When was the first time I told you about Rex?", "first"),
    ("Which book did I first read?", "first"),
    ("When did Mary Ann first call?", "first"),
    ("What did I say first?", "first"),
    ("What is the earliest plan we made?", "first"),
    ("Wann war ich zum ersten Mal in Rom?", "first"),
    ("Was habe ich zuerst gesagt?", "first"),
    ("¿Qué fue lo primero que dije?", "first"),
    ("¿Cuándo fue la primera vez?", "first"),
    ("Quand y suis-je allé pour la première fois ?", "first"),
    ("Qual è stata la prima cosa che ho detto?", "first"),
    ("Quando foi a primeira vez?", "first"),
    ("Kapan pertama kali saya ke Bali?", "first"),
    ("Ano ang una kong sinabi?", "first"),
    ("What did I say most recently?", "last"),
    ("What is the latest?", "last"),
    ("When was the last time I saw Ana?", "last"),
    ("When was I last in Paris?", "last"),
    ("What did Ana last say?", "last"),
    ("What did I eat last?", "last"),
    ("What was my last message?", "last"),
    ("Which was the newest idea?", "last"),
    ("Was habe ich zuletzt gesagt?", "last"),
    ("¿Cuándo fue la última vez que corrí?", "last"),
    ("¿Cuál es el plan más reciente?", "last"),
    ("Qu'est-ce que j'ai dit en dernier ?", "last"),
    ("Quand ai-je couru pour la dernière fois ?", "last"),
    ("Quando è stata l'ultima volta?", "last"),
    ("Qual foi a última coisa que eu disse?", "last"),
    ("Kapan saya terakhir ke Bali?", "last"),
    ("Kailan ang huling beses na tumakbo ako?", "last"),
    ("What is my first name?", None),
    ("What is Ana's last name?", None),
    ("What did I do last week?", None),
    ("Where was I last Monday?", None),
    ("Where was I last Christmas?", None),
    ("What did the last two people say?", None),
    ("What did I say at last?", None),
    ("Did I finish the last chapter?", None),
    ("Where is the first aid kit?", None),
    ("First, tell me about Rome", None),
    ("Is it due at the latest by Monday?", None),
    ("What should I do first?", None),
    ("What's the first thing I should do?", None),
    ("Is that the last thing I need?", None),
    ("Was I last in line?", None),
    ("Who came first?", None),
    ("What did I name my first dog?", None),
    ("How did I last so long?", None),
    ("What do I do first thing in the morning?", None),
    ("When was the first time, and when the latest?", None),
    ("What did she say about the first?", None),
    ("Erste Hilfe", None),
    ("El primer ministro", None),
    ("Le dernier métro", None),
    ("Il primo ministro", None),
    ("Unang palapag", None),
    ("", None),
]


@each_case(("question", "expected"), ORDERS)
def test_the_earliest_or_the_newest_is_asked_for(question: str, expected: str | None) -> None:
    assert find_hints(question, NOW).order == expected


REPLIES = [
    ("Which tires did you recommend?", True),
    ("What did you also once suggest for the glaze?", True),
    ("What was the recipe that you gave me?", True),
    ("Have you told me how long it takes?", True),
    ("You mentioned a book about kilns.", True),
    ("Was hast du mir empfohlen?", True),
    ("¿Qué esmalte me recomendaste?", True),
    ("O que você recomendou?", True),
    ("Qu'est-ce que tu m'as recommandé ?", True),
    ("Che cosa mi hai consigliato?", True),
    ("Ano ang sinabi mo tungkol sa gulong?", True),
    ("Which tires would you recommend?", False),
    ("Can you list what I need?", False),
    ("What have I told you about my kiln?", False),
    ("Do you remember what I said?", False),
    ("Where did I say that I met Laura?", False),
    ("Did you know? He told me so.", False),
    ("Did you. Say it", False),
    ("Sinabi ko na", False),
    ("you", False),
    ("", False),
]


@each_case(("question", "expected"), REPLIES)
def test_what_the_addressee_said_is_asked_for(question: str, expected: bool) -> None:
    assert find_hints(question, NOW).asks_reply is expected


def test_the_time_of_what_the_addressee_said_is_asked_for_as_well() -> None:
    found = find_hints("When did you say the kiln would arrive?", NOW)
    assert found.asks_reply
    assert found.expects == {"time"}


def test_yesterday_is_the_askers() -> None:
    late = datetime(2023, 11, 15, 23, 30, tzinfo=UTC)
    manila = late.astimezone(timezone(timedelta(hours=8)))
    assert find_hints("kahapon", late).dates == (day(2023, 11, 14),)
    assert find_hints("kahapon", manila).dates == (day(2023, 11, 15),)


def test_at_most_four_dates_each_once() -> None:
    months = ["May 1", "May 2", "May 2", "May 3", "May 4", "May 5"]
    found = find_hints(f"on {', on '.join(months)}", NOW).dates
    assert found == tuple(day(None, 5, number) for number in range(1, 5))


def test_the_calendars_ends_are_no_obstacle() -> None:
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    for question in (
        "yesterday", "last Monday", "900 years ago", "last year", "last week", "last weekend", "last summer", "in winter",
        "in the last three days", "last 900 years",
    ):  # fmt: skip
        assert find_hints(question, first).dates == ()
    for question in ("tomorrow", "next year", "next Sunday", "next week", "next summer"):
        assert find_hints(question, last).dates == ()


# Wednesday: the week is from two days before to four days after.
TOLD: list[tuple[str, tuple[Days, ...]]] = [
    ("Yesterday I fell.", ((-1, -1),)),
    ("It broke the day before yesterday, and last night again.", ((-2, -2), (-1, -1))),
    ("We met last Friday", ((-5, -5),)),
    ("three days ago", ((-3, -3),)),
    ("a week ago, yes, a week ago", ((-9, -3),)),
    ("last week, or two weeks ago?", ((-9, -3), (-16, -10))),
    ("I moved last month", ((-45, -15),)),
    ("last year", ((-683, -319),)),
    ("tomorrow and next Sunday", ((1, 1), (4, 4))),
    ("anteayer, el viernes pasado, hace dos semanas", ((-2, -2), (-5, -5), (-16, -10))),
    ("gestern, letzte Woche, vor drei Tagen", ((-1, -1), (-9, -3), (-3, -3))),
    ("kahapon, noong isang araw, noong nakaraang linggo", ((-1, -1), (-2, -2), (-9, -3))),
    ("noong nakaraang Sabado", ((-4, -4),)),
    ("last weekend, le week-end dernier", ((-4, -3),)),
    ("We swam over the weekend, and in the last two days.", ((-4, -3), (-2, 0))),
    ("il y a deux jours", ((-2, -2),)),
]
NOT_TOLD = [
    "", "Today.", "on 7 May 2023", "on Monday", "some time ago", "a few days ago", "last summer", "in spring", "in March", "at noon",
    "the last one", "yesteryear", "5000 weeks ago",
]  # fmt: skip


@each_case(("text", "expected"), TOLD)
def test_days_are_told_by_how_far_they_are(text: str, expected: tuple[Days, ...]) -> None:
    assert relative_days(text, NOW.date()) == expected
    assert marks(text).has_time, "else nobody would look for them"


@each_case("text", NOT_TOLD)
def test_what_is_said_by_its_date_or_vaguely_is_not_told(text: str) -> None:
    assert relative_days(text, NOW.date()) == ()


def test_of_the_days_that_are_told_there_are_at_most_eight() -> None:
    text = ", ".join(f"{number} days ago" for number in range(2, 30))
    assert relative_days(text, NOW.date()) == tuple((-number, -number) for number in range(2, 10))


TIME, NUMBER = frozenset({"time"}), frozenset({"number"})
WANTS: list[tuple[str, frozenset[str]]] = [
    ("When did Caroline move?", TIME),
    ("when is it", TIME),
    ("When's the party?", TIME),
    ("Since when have you known?", TIME),
    ("And when was that?", TIME),
    ("By the way, when did she call?", TIME),
    ("When Jon has lost his job?", TIME),
    ("Do you know when she left?", TIME),
    ("What year did he start?", TIME),
    ("In which month was it?", TIME),
    ("How long ago was it?", TIME),
    ("Kailan ang alis?", TIME),
    ("Kelan ba yun", TIME),
    ("Anong oras tayo aalis?", TIME),
    ("¿Cuándo fue?", TIME),
    ("Quand est-il parti ?", TIME),
    ("Wann war das?", TIME),
    ("Quando foi?", TIME),
    ("Kapan dia datang?", TIME),
    ("How many dogs?", NUMBER),
    ("For how much did it sell?", NUMBER),
    ("How old is she?", NUMBER),
    ("How long has he played?", NUMBER),
    ("Ilan ang aso mo?", NUMBER),
    ("Ilang beses na?", NUMBER),
    ("Magkano yung bili mo?", NUMBER),
    ("¿Cuántos perros tienes?", NUMBER),
    ("Combien de chiens ?", NUMBER),
    ("Wie viele Hunde?", NUMBER),
    ("Quanti cani hai?", NUMBER),
    ("Quantos são?", NUMBER),
    ("Berapa anaknya?", NUMBER),
    ("When did they meet, and how many came?", TIME | NUMBER),
]
WANTS_NOTHING = [
    "What did she do when she was sad?", "When I was young, what did I like?", "When she left, who stayed?",
    "Who is it?", "How did it go?", "How are you?", "Where is it?", "I cried when he left", "Ano ang gusto mo?",
    "what a day", "Cuando era niño, ¿qué hacía?", "Quand il pleut, que fais-tu ?", "Was ist das?", "Por que?", "",
    "Many thanks", "That is much better", "Whenever", "Someone once asked", "How nice of you",
]  # fmt: skip


@each_case(("question", "expected"), WANTS)
def test_the_kind_of_answer_is_found(question: str, expected: frozenset[str]) -> None:
    assert find_hints(question, NOW).expects == expected


@each_case("question", WANTS_NOTHING)
def test_other_questions_want_neither_time_nor_number(question: str) -> None:
    assert find_hints(question, NOW).expects == frozenset()


WITHOUT: list[tuple[str, list[str], str]] = [
    ("When did Melanie paint?", ["Melanie"], "When did paint?"),
    ("What is Caroline's identity?", ["Caroline"], "What is identity?"),
    ("What is Caroline\u2019s identity?", ["Caroline"], "What is identity?"),
    ("What did James' dog eat?", ["James"], "What did dog eat?"),
    ("when did melanie paint?", ["Melanie"], "when did paint?"),
    ("Melanie, when is it?", ["Melanie"], "when is it?"),
    ("Did you see Tim?", ["Tim"], "Did you see?"),
    ("Did Mary Ann call?", ["Mary Ann"], "Did call?"),
    ("Did Will say it will rain?", ["Will"], "Did say it will rain?"),
    ("Did Timothy see Tim?", ["Tim"], "Did Timothy see?"),
    ("Did Anne-Marie call?", ["Marie"], "Did Anne-Marie call?"),
    ("Did Anne-Marie call?", ["Anne-Marie"], "Did call?"),
    ("Tim?", ["Tim"], "Tim?"),
    ("Tim and  Sam", [], "Tim and Sam"),
    ("  ", ["Tim"], "  "),
    ("Saan si Ana, Jun?", ["Ana", "Jun"], "Saan si?"),
]


@each_case(("question", "names", "expected"), WITHOUT)
def test_names_are_taken_out(question: str, names: list[str], expected: str) -> None:
    assert without(question, names) == expected


QUESTIONS = [
    "Really?", "Is it you? \U0001f60a", 'He said "why?"', "(are you sure?)", "What about you?!", "真的？", "حقا؟",
    "ok? :)", "You came?? <3", "what did you say", "how many dogs", "where is it", "saan ka pupunta", "bakit ganun",
    "sino yun", "warum nicht", "how much did you pay",
]  # fmt: skip
STATEMENTS = [
    "I know.", "He asked why? Then he left.", "What a day", "what a nice day", "How nice of you", "ok", "", "...",
    "When I was young I had a dog", "Who cares.", "What you said, I like", "which one", "why", "\U0001f60a",
    "what did you say to him yesterday when we all were at the beach with the dog", "It's 5 o'clock", "Sige", "Where I am",
    "how much I love you guys",
]  # fmt: skip


@each_case("text", QUESTIONS)
def test_questions_are_marked(text: str) -> None:
    assert marks(text).is_question


@each_case("text", STATEMENTS)
def test_statements_are_not(text: str) -> None:
    assert not marks(text).is_question


TIMES = [
    "We met last week", "noong isang linggo pa", "two weeks ago", "a few years ago", "at 10:30", "at 5pm", "5 PM na",
    "10 o'clock", "last summer", "the other day", "tomorrow", "bukas na", "(2019)", "um 14 Uhr", "alas-3 ng hapon",
    "la semana pasada", "la semaine dernière", "letzte Woche", "semana passada", "la settimana scorsa", "minggu lalu",
    "See you at noon", "on 5/7/2023", "sa susunod na linggo", "an hour ago", "due giorni fa", "noong Pasko", "this summer", "on Easter", "I was born in 1985.",
    "for three years now", "a few weeks back", "dalawang taon na kami",
]  # fmt: skip
NO_TIMES = [
    "You may go", "I have two dogs", "May nanay ako", "ang ganda", "It sold for 2000", "give me a second", "one day",
    "every week", "day and night", "a 2 week holiday", "the sun set", "they march on", "with mayo", "at home", "ago",
    "chapter 3", "3:2", "1:100", "Ist er hier?", "next to me", "this is it", "5 apples", "the last one", "a year",
    "any day now", "come back", "two days na lang", "for now", "go back now",
]  # fmt: skip
NUMBERS = [
    "I have 3",
    "my fourth cup",
    "two dogs",
    "a dozen",
    "twice",
    "dalawang aso",
    "apat na anak",
    "tres lang",
    "zwei Hunde",
    "२",
]
NO_NUMBERS = [
    "one of them",
    "isa pa",
    "someone",
    "isang araw",
    "I won",
    "the due date",
    "once more",
    "an elf",
    "",
    "tone",
]
SAYS_A_NAME = ["I met Tim", "kasama ko si Ana", "My dog Rex", "in Rome.", "vi Мария", "Did Jun go?"]
SAYS_NO_NAME = [
    "Tim called",
    "I am",
    "So I said",
    "in May",
    "on Monday",
    "Yes. Then we left",
    'He said: "Go"',
    "LOL",
    "",
]


@each_case("text", TIMES)
def test_times_are_marked(text: str) -> None:
    assert marks(text).has_time


@each_case("text", NO_TIMES)
def test_what_looks_like_a_time_is_not(text: str) -> None:
    assert not marks(text).has_time


@each_case("text", NUMBERS + NO_NUMBERS)
def test_numbers_are_marked(text: str) -> None:
    assert marks(text).has_number is (text in NUMBERS)


@each_case("text", SAYS_A_NAME + SAYS_NO_NAME)
def test_names_inside_sentences_are_marked(text: str) -> None:
    assert marks(text).has_name is (text in SAYS_A_NAME)


def test_nothing_named_is_nothing_found() -> None:
    assert find_hints("what do i like to eat", NOW) == QueryHints()
    assert marks("i like to eat") == Marks()


ALPHABET = st.one_of(
    st.text(max_size=60),
    st.lists(
        st.sampled_from([
            "May", "may", "5", "2023", "Tim", "Tim's", "'", "\u2019", "-", " ", " ", " ", ",", ".", "?", "¿", "noong",
            "isang", "linggo", "last", "ago", "two", "days", "5/7/2023", "When", "did", "\u0301", "\U0001f60a", "\ud800",
            "\x00", "ß", "İ", "ǅ", "il y a", "9" * 30, "٣", "²", "\n", '"', "the Sunday before", "before", "ika-7 ng",
            "since", "between", "and", "to", "summer", "in the last", "weeks", "weekend", "first", "did I", "2022", "of",
        ]),
        max_size=25,
    ).map("".join),
)  # fmt: skip
MOMENTS = st.datetimes(timezones=st.just(UTC))


@settings(max_examples=60, deadline=None)
@given(ALPHABET, MOMENTS)
@example("\ud800 May \udfff", datetime.max.replace(tzinfo=UTC))
def test_nothing_raises_and_bounds_hold(text: str, now: datetime) -> None:
    found = find_hints(text, now)
    assert found == find_hints(text, now)
    assert len(found.names) <= 3
    assert len(found.dates) <= 4
    assert all(name and not name.endswith(("'s", "\u2019s")) for name in found.names)
    assert found.order in (None, "first", "last")
    for named in found.dates:
        assert named != NamedDate()
        assert named.day is None or named.month is not None or named.weekday is not None
        if named.first is not None or named.last is not None:
            assert named == NamedDate(first=named.first, last=named.last)
            assert named.first is None or named.last is None or named.first < named.last
    assert isinstance(marks(text), Marks)
    days = relative_days(text, now.date())
    assert len(set(days)) == len(days) <= 8
    assert all(-1_000_000 <= first <= last < 1_000_000 for first, last in days)


@settings(max_examples=60, deadline=None)
@given(
    ALPHABET, st.lists(st.sampled_from(["Tim", "May", "s", "", " ", "Tim's", "ß", "Mary Ann"]) | st.text(max_size=5))
)
@example("Tim's's", ["Tim"])
@example("Tim' Tim", ["Tim", "s"])
def test_a_question_without_its_names_is_never_blank_and_stays_so(text: str, names: list[str]) -> None:
    once = without(text, names)
    assert once.strip() or not text.strip()
    assert without(once, names) == once


@settings(max_examples=40, deadline=None)
@given(ALPHABET, MOMENTS)
def test_a_date_that_is_named_is_a_time_that_is_said(text: str, now: datetime) -> None:
    if find_hints(text, now).dates:
        assert marks(text).has_time


HOSTILE = [
    "a a a ", '"', "5 ", "1", "A", "A'", "A-", "may 5 ", "last ", ". A", "noong isang ", "?", "a\u0301\u0316", " ", "'s ",
    "(2019) ", "il y a ", '"a b" ', "2023-05-07 ", "1:", "\u0301\u0316", "A.", "Sunday before 7 May 2023 ", "   :)", "ﷺ",
    "since the ", "between 3 and ", "May 3-", "in the last 3 ", "summer of the ", "did I last ", "last week to ",
]  # fmt: skip


# 50,000 characters each, for which a rule that is quadratic takes half a minute.
@pytest.mark.timeout(10)
@pytest.mark.parametrize("piece", HOSTILE)
def test_a_long_hostile_text_has_an_end(piece: str) -> None:
    text = (piece * (50_000 // len(piece) + 1))[:50_000]
    find_hints(text, NOW)
    marks(text)
    relative_days(text, NOW.date())
    without(text, ["A", "Tim"])


@each_case("language", languages("cues"))
def test_every_language_has_all_months_and_weekdays(language: str) -> None:
    data = load("cues", language, TABLES)
    assert set(data["months"]) == {str(number) for number in range(1, 13)}
    assert set(data["weekdays"]) == {str(number) for number in range(1, 8)}
    named = {
        text
        for table in ("months", "weekdays", "days", "seasons")
        for listed in data[table].values()
        for text in listed
    }
    weak = data["weak"]
    assert set(weak.get("words", ())) <= named
    assert set(weak.get("capital", ())) <= set(weak.get("words", ()))


@each_case("language", languages("cues"))
def test_every_language_has_the_words_around_spans(language: str) -> None:
    data = load("cues", language, TABLES)
    assert data["units"]["weekend"]
    assert set(data["seasons"]) == {"spring", "summer", "autumn", "winter"}
    kinds = {
        "since",
        "until",
        "before",
        "after",
        "between",
        "from",
        "and",
        "to",
        "during",
        "article",
        "earliest",
        "newest",
    }
    assert kinds <= data["words"].keys()
    assert not {"recent", "recent_after"}.isdisjoint(data["words"])


def test_words_are_compared_without_case_and_accents() -> None:
    assert [key(word) for word in ("Año", "MÄRZ", "ﬁn", "Straße")] == ["ano", "marz", "fin", "strasse"]
