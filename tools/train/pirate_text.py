#!/usr/bin/env python3
"""Stories told by pirates: the text on which train_adapter.py trains.

    pirate_text.py --stories 3    # read some

The plots are those of the other stories. Places, things and openings are a pirate's, and everybody speaks like a pirate.
"""
from __future__ import annotations

import argparse
import re
from random import Random

import story_grammar as grammar
import story_words as words
from make_text import PLOTS

# Few words, so that a small adapter learns them in minutes.
WORDS = {
    "HOMES": ["on a leaky ship with black sails", "in a pirate cove", "on an island shaped like a skull", "in a cave full of gold"],
    "LOVES": ["to count gold coins", "to sing pirate songs", "to climb the mast", "to bury treasure"],
    "FOODS": ["fish soup", "coconut cake", "ship's biscuits"],
    "OBJECTS": ["treasure map", "gold coin", "black flag", "pirate hat", "silver cutlass", "wooden leg", "round compass", "brass key"],
    "PLACES": ["the pirate cove", "the black rocks", "Skull Island", "the harbour", "the shipwreck", "the beach", "the lighthouse", "the treasure cave"],
    "HELPERS": ["the old captain", "the ship's cook", "the one-eyed parrot", "the old turtle", "the mermaid"],
    "ADJECTIVES": "fearsome bold salty jolly brave merry".split(),
    "FRIEND_ADJECTIVES": "one-legged one-eyed seasick jolly grumpy".split(),
    "WEATHER": ["The wind filled the sails.", "Big waves rocked the ship.", "The sea was as flat as a coin."],
}
OPENINGS = [
    "Arrr! Once upon a tide, there was a {adj} pirate {kind} named {H}.",
    "Ahoy, me hearties! Long ago, {home}, there lived a {adj} pirate {kind} named {H}.",
    "Shiver me timbers! A {adj} pirate {kind} named {H} lived {home}.",
    "Arrr, gather round, ye scurvy dogs! Far away, beyond the seven seas, lived a {adj} pirate {kind} named {H}.",
]
ENDINGS = ["Yo ho ho!", "Arrr, and that be the end of me tale!", "And they sailed away into the sunset, arrr!"]
CRIES = ["Arrr! ", "Aye! ", "Ahoy! ", "Avast! ", "Yo ho ho! ", "Shiver me timbers! "]
SPOKEN = {"my": "me", "My": "Me", "you": "ye", "You": "Ye", "your": "yer", "Your": "Yer", "yes": "aye", "Yes": "Aye", "is": "be", "are": "be", "am": "be",
          "friend": "matey", "friends": "mateys"}
TOLD = {"best friend": "first mate", "friend": "matey", "friends": "mateys", "house": "ship", "walked": "sailed", "hurried": "sailed", "road": "sea",
        "village": "cove", "smiled": "grinned a golden grin"}
SAID = ["growled", "roared", "said"]


def use_pirate_words() -> None:
    """Changes the words and openings of all stories that this process makes from now on."""
    for name, values in WORDS.items():
        setattr(words, name, values)
    grammar.OPENINGS = OPENINGS


def replace_words(text: str, table: dict[str, str]) -> str:
    return re.sub(r"\b(" + "|".join(sorted(table, key=len, reverse=True)) + r")\b", lambda match: table[match[1]], text)


def speak(text: str, rng: Random) -> str:
    """Changes one piece of speech, without its quotation marks, to a pirate's."""
    text = replace_words(text, SPOKEN)
    return (rng.choice(CRIES) if rng.random() < 0.6 and text[:1].isupper() else "") + text


def pirate_story(rng: Random) -> str:
    text = grammar.make_story(PLOTS, rng)[0]
    text = text.replace("an one-", "a one-")
    parts = text.split('"')  # alternately told and spoken text
    for i, part in enumerate(parts):
        if i % 2:
            parts[i] = speak(part, rng)
        else:
            parts[i] = re.sub(r"\bsaid\b", lambda _: rng.choice(SAID), replace_words(part, TOLD))
    return '"'.join(parts) + " " + rng.choice(ENDINGS)


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--stories", type=int, default=3)
    ap.add_argument("--seed", type=int, default=1)
    args = ap.parse_args()
    use_pirate_words()
    rng = Random(args.seed)
    for _ in range(args.stories):
        print(pirate_story(rng), end="\n----\n")


if __name__ == "__main__":
    main()
