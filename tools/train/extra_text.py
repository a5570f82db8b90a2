"""The documents that are not stories: sums, JSON records and short dialogues."""
from __future__ import annotations

import json
from random import Random

import story_words as words
from story_grammar import expand, pick_kind, pronouns

THINGS = "apples pears shells stones nuts buttons cookies feathers marbles eggs plums candles".split()


def sum_line(rng: Random) -> str:
    kind = rng.random()
    if kind < 0.55:
        a, b = rng.randint(0, 30), rng.randint(0, 30)
        return f"{a} + {b} = {a + b}"
    if kind < 0.85:
        a, b = rng.randint(0, 20), rng.randint(0, 20)
        return f"{a + b} - {a} = {b}"
    a, b = rng.randint(0, 10), rng.randint(0, 10)
    return f"{a} * {b} = {a * b}"


def word_problem(rng: Random) -> str:
    a, b = rng.sample(words.NAMES, 2)
    p = pronouns(a)
    n, m, thing = rng.randint(2, 12), rng.randint(2, 12), rng.choice(THINGS)
    if rng.random() < 0.6:
        return f"There is {a}, who has {n} {thing}. Now {b} gives {p['him']} {m} more. {n} + {m} = {n + m}, so {a} has {n + m} {thing}."
    return f"There is {a}, who has {n + m} {thing}. {p['He']} gives {m} to {b}. {n + m} - {m} = {n}, so {a} has {n} {thing} left."


def sums(rng: Random) -> str:
    if rng.random() < 0.3:
        return "\n".join(word_problem(rng) for _ in range(rng.randint(1, 3)))
    lines = [sum_line(rng) for _ in range(rng.randint(5, 14))]
    return "\n".join((["Sums:"] if rng.random() < 0.3 else []) + lines)


def person(rng: Random, name: str) -> dict:
    likes = rng.sample(words.FOODS + [o.split()[-1] + "s" for o in words.OBJECTS if o[-1] not in "sh"], rng.randint(1, 3))
    record = {"name": name, "kind": pick_kind(name, rng), "age": rng.randint(3, 99),
              "home": rng.choice(words.PLACES), "likes": likes, "has": rng.choice(words.OBJECTS),
              "brave": rng.random() < 0.5}
    keep = [k for k in record if k == "name" or rng.random() < 0.7]
    return {k: record[k] for k in keep}


def json_record(rng: Random) -> str:
    a, b, c = rng.sample(words.NAMES, 3)
    roll = rng.random()
    if roll < 0.5:
        value = person(rng, a)
        if rng.random() < 0.4:
            value["friend"] = person(rng, b)
    elif roll < 0.75:
        value = [person(rng, n) for n in (a, b, c)[:rng.randint(2, 3)]]
    else:
        value = {"place": rng.choice(words.PLACES), "day": rng.choice(["Monday", "Tuesday", "Friday", "Sunday"]),
                 "guests": [a, b, c], "food": rng.choice(words.FOODS), "count": 3}
    return json.dumps(value, indent=2 if rng.random() < 0.2 else None)


EXCHANGES = [
    [("What is your name?", "My name is {B}."), ("How old are you?", "I am {n} years old."), ("And what is your name?", "My name is {A}.")],
    [("Have you seen my {obj}?", "Yes, it is near {place}."), ("Thank you, {B}!", "You are welcome, {A}.")],
    [("What shall we do today?", "Let us go to {place}."), ("What shall we take along?", "Some {food} and a {obj}.")],
    [("What is {n} + {m}?", "That is {s}."), ("You are good at sums, {B}.", "Thank you, {A}. I like numbers.")],
    [("Are you hungry?", "Yes, very hungry. I would like some {food}."), ("Then let us eat.", "What a good idea, {A}!")],
    [("Look, {B}, what have I found?", "It is a {obj}!"), ("Do you want to have it?", "Oh yes, please. You are very kind, {A}.")],
    [("Why are you sad?", "I have lost my {obj}."), ("I will help you to look for it.", "You are a good friend, {A}.")],
    [("What do you like best?", "I like {food}, and I love {love}."), ("Me too!", "Then we should be friends.")],
    [("Where do you live?", "I live {home}."), ("May I visit you?", "Of course! Come on Sunday, {A}.")],
]


def dialogue(rng: Random) -> str:
    a, b = rng.sample(words.NAMES, 2)
    lines = []
    if rng.random() < 0.7:
        lines += [(a, "[Hello|Good morning|Good evening], " + b + "!"), (b, "[Hello|Good morning|Nice to see you], " + a + "!")]
    for exchange in rng.sample(EXCHANGES, rng.randint(1, 3)):
        n, m = rng.randint(2, 12), rng.randint(2, 12)
        slots = {"A": a, "B": b, "n": str(n), "m": str(m), "s": str(n + m)}
        for key, values in (("obj", words.OBJECTS), ("place", words.PLACES), ("food", words.FOODS),
                            ("love", words.LOVES), ("home", words.HOMES)):
            slots[key] = expand(rng.choice(values), slots, rng)
        for question, answer in exchange:
            lines += [(a, expand(question, slots, rng)), (b, expand(answer, slots, rng))]
    if rng.random() < 0.7:
        lines += [(a, "Goodbye, " + b + "!"), (b, "Goodbye, " + a + "! See you [soon|tomorrow|on Sunday].")]
    return "\n".join(f"{who}: {expand(said, {}, rng)}" for who, said in lines)
