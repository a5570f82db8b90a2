"""A small template language, and the shape that all stories share.

In a template `[a|b]` is a choice (choices may nest) and `{word}` is a value fixed for the
whole story: {H} is the hero and {F} the friend, with pronouns {he} {him} {his} {He} {His}
and {fhe} {fhim} {fhis} {fHe} {fHis}.  "a" becomes "an" where it should.
"""
from __future__ import annotations

import re
from random import Random

import story_words as words

CHOICE = re.compile(r"\[([^\[\]]*)\]")
SLOT = re.compile(r"\{(\w+)\}")
ARTICLE = re.compile(r"\b([Aa]) (?=[aeio]|umb|uncle)")
NEW_PARAGRAPH = "\n"


def expand(text: str, slots: dict[str, str], rng: Random) -> str:
    while True:
        found = CHOICE.search(text)
        if not found:
            break
        text = text[:found.start()] + rng.choice(found.group(1).split("|")) + text[found.end():]
    text = SLOT.sub(lambda m: slots[m.group(1)], text)
    return ARTICLE.sub(r"\1n ", text)


def maybe(*options: str, chance: float = 0.5):
    """Returns a beat that a story leaves out with probability 1 - chance."""
    return (chance, list(options))


OPENINGS = [
    "Once upon a time, there was a {adj} {kind} named {H}.",
    "Once upon a time, there was a {adj} {kind} called {H}, who lived {home}.",
    "Once upon a time, a {adj} {kind} named {H} lived {home}.",
    "Once there was a {kind} named {H} who loved {love}.",
    "There was once a {adj} {kind} whose name was {H}.",
    "Long ago, {home}, there lived a {adj} {kind} named {H}.",
    "Not so long ago, a {kind} called {H} lived {home}.",
    "This is the story of {H}, a {adj} {kind} who lived {home}.",
    "One [sunny|windy|bright|quiet|cold|misty] morning, a {adj} {kind} named {H} woke up [early|with a smile|to the sound of bells|before everyone else].",
    "In a [green forest|small town|quiet garden|land of hills and lakes], not far from here, there lived a {adj} {kind} called {H}.",
    "Far away, beyond the [hills|mountains|blue sea|last village], lived a {adj} {kind} named {H}.",
    "Every day, a {adj} {kind} named {H} [looked out of the window and wondered what would happen next|went for a walk before breakfast|said good morning to the sun].",
    "Everyone [in the village|in the valley|for miles around] knew {H}, the {adj} {kind}.",
    "It was a [bright|cold|quiet|golden] [spring|autumn|summer|winter] day, and a {adj} {kind} named {H} was [very happy|a little bored|humming a song].",
]
NAME_FIRST = [
    "{H} was a {adj} {kind} who lived {home}.",
    "{H} lived {home}.",
    "{H} the {kind} loved {love}.",
    "{H} woke up [early|with a smile|before the sun].",
]
TRAITS = [
    "{He} loved {love}, and {he} did it every day.",
    "More than anything, {H} loved {love}.",
    "{He} lived {home}, and [the wind sang at the window|the mornings were full of birds|there was always something to see].",
    "{His} favourite food was {food}.",
    "{He} had a [warm|big|quick] smile and a [small|soft|cheerful] voice.",
    "{H} was not [very big|very tall|very loud], but {he} had a big heart.",
    "{He} was always [humming a tune|full of ideas|ready for an adventure|asking why].",
]
FRIENDS = [
    "{His} best friend was a {fadj} {fkind} named {F}.",
    "{He} had a good friend, a {fadj} {fkind} called {F}.",
    "Next door lived {F}, a {fadj} {fkind}, and the two were best friends.",
    "{H} and a {fadj} {fkind} named {F} did everything together.",
    "{His} friend {F} was a {fadj} {fkind} who [laughed a lot|loved {food}|lived just across the road|could whistle like a bird].",
]
ENDINGS = [
    "And that night, {H} slept [very well|soundly|with a smile|deeply and happily].",
    "And {H} was [happy|very happy|glad|proud and happy].",
    "From that day on, {H} and {F} were [closer than ever|the best of friends|always together].",
    "That evening, {H} sat by the window, [looked at the stars|listened to the wind|ate some {food}] and smiled.",
    "\"What a day,\" said {H}, and [closed {his} eyes|yawned a big yawn|laughed|gave {F} a hug].",
    "And whenever it rained, {H} thought of that day and smiled.",
    "\"You are the best friend in the world, {F},\" said {H}.",
    "{F} smiled, and so did {H}.",
    "After that, {H} was never [lonely|sad|worried] for long.",
    "\"Let us do something new tomorrow,\" said {F}, and {H} [nodded|laughed|agreed].",
    "To this day, {H} tells the story to everyone who will listen.",
    "\"Good night, {F},\" said {H} at last.",
]
OUTDOOR_ENDINGS = [
    "And if you ever walk past {place}, you may still hear {H} laughing.",
    "Everyone cheered for {H}, and they all ate {food} together.",
    "Then {H} and {F} walked home [hand in hand|side by side|under the first stars], [singing all the way|full of joy|tired but happy].",
    "On the way home, {H} and {F} sang their favourite song, and {H} sang the loudest.",
]


def pronouns(name: str, prefix: str = "") -> dict[str, str]:
    he, him, his = ("she", "her", "her") if name in words.GIRLS else ("he", "him", "his")
    return {prefix + "he": he, prefix + "him": him, prefix + "his": his,
            prefix + "He": he.capitalize(), prefix + "His": his.capitalize()}


def made_up_name(rng: Random) -> str:
    return rng.choice(words.MADE_UP_HEAD) + rng.choice(words.MADE_UP_TAIL)


def pick_kind(name: str, rng: Random) -> str:
    roll = rng.random()
    if roll < 0.45:
        return "girl" if name in words.GIRLS else "boy"
    return rng.choice(words.ANIMALS if roll < 0.9 else words.FANTASY)


def make_slots(rng: Random, hero: str | None = None) -> dict[str, str]:
    known_hero, friend = rng.sample(words.NAMES, 2)
    slots = {"H": hero or known_hero, "F": friend}
    # A made-up name still needs a gender: the gender of the name that it replaces.
    slots.update(pronouns(known_hero))
    slots.update(pronouns(friend, "f"))
    slots["kind"], slots["fkind"] = pick_kind(known_hero, rng), pick_kind(friend, rng)
    slots["adj"] = rng.choice(words.ADJECTIVES)
    slots["fadj"] = rng.choice(words.FRIEND_ADJECTIVES)
    for key, values in (("home", words.HOMES), ("food", words.FOODS), ("love", words.LOVES)):
        slots[key] = expand(rng.choice(values), {}, rng)
    slots["obj"] = rng.choice(words.OBJECTS)
    slots["noun"] = slots["obj"].split()[-1]
    slots["place"], slots["place2"], slots["place3"] = rng.sample(words.PLACES, 3)
    slots["Place"] = slots["place"].capitalize()
    slots["helper"] = rng.choice(words.HELPERS)
    slots["Helper"] = slots["helper"].capitalize()
    slots["weather"] = expand(rng.choice(words.WEATHER), {}, rng)
    return slots


def draw_plot_slots(plot: dict, slots: dict[str, str], rng: Random) -> None:
    """Draws the values of a plot's slots. A key such as "baby,mother" draws linked values
    from a list of tuples."""
    for key, options in plot.get("slots", {}).items():
        value = rng.choice(options)
        names = key.split(",")
        for name, part in zip(names, value if len(names) > 1 else (value,)):
            slots[name] = expand(part, slots, rng)


def run_beats(beats: list, slots: dict[str, str], rng: Random) -> list[str]:
    out = []
    for beat in beats:
        if beat == NEW_PARAGRAPH:
            out.append(beat)
            continue
        options = beat
        if isinstance(beat, tuple):
            chance, options = beat
            if rng.random() > chance:
                continue
        text = expand(rng.choice(options) if isinstance(options, list) else options, slots, rng)
        out.append(text[0].upper() + text[1:])
    return out


def join(parts: list[str], names: tuple[str, ...]) -> str:
    """Joins sentences into paragraphs.

    A paragraph never begins with a name. So a name is always written with the same token,
    the one that begins with a space, which is far easier to learn.
    """
    text = ""
    for i, part in enumerate(parts):
        if part == NEW_PARAGRAPH:
            continue
        broken = i > 0 and parts[i - 1] == NEW_PARAGRAPH and not part.startswith(names)
        text += ("" if not text else "\n" if broken else " ") + part
    return text


def make_story(plots: list[dict], rng: Random) -> tuple[str, list[list[int]]]:
    """Returns one story and its quiet spans: characters to read but not to learn to write.

    Two kinds of names are quiet: a made-up name at its first place, and a name that opens
    a story. So a model continues well after such a prompt but does not begin so by
    itself.
    """
    hero = made_up_name(rng) if rng.random() < 0.06 else None
    slots = make_slots(rng, hero)
    plot = rng.choice(plots)
    draw_plot_slots(plot, slots, rng)
    name_first = rng.random() < 0.06
    head = [NAME_FIRST if name_first else OPENINGS]
    head.append(maybe(*TRAITS, chance=0.75))
    head.append(FRIENDS)
    endings = ENDINGS + OUTDOOR_ENDINGS if plot.get("outdoors") else ENDINGS
    opening = run_beats(head, slots, rng)
    # Draws again if the opening tells the same thing twice.
    while any(" ".join(opening).count(slots[key]) > 1 for key in ("love", "home", "food")):
        opening = run_beats(head, slots, rng)
    parts = opening + run_beats([NEW_PARAGRAPH] + plot["beats"] + [endings], slots, rng)
    text = join(parts, (slots["H"], slots["F"]))
    at = text.index(slots["H"])
    quiet = [[at, at + len(slots["H"])]] if hero or name_first else []
    return text, quiet
