#!/usr/bin/env python3
"""Checks the output of make_text.py. Run it after any change to the stories.

Each of the first documents must be the same when it is made twice, must contain nothing
of the template language, and, if it is a story, must pass the same test as the stories of
a model.
"""
from __future__ import annotations

import json
import re
import sys

from count_names import judge
from make_text import EXTRAS, PLOTS, document
from story_words import BOYS, GIRLS, NAMES

FAULTS = re.compile(r"[{}\[\]|]|\b[Aa] [aeio]\w|  |\.\.|\b(\w+) \1\b|[.,!?][A-Za-z]")
DOCUMENTS = 5000


def fault(doc: dict) -> str | None:
    text = doc["text"]
    if doc["kind"] == "json":
        json.loads(text)
        return None
    if doc["kind"] != "story":
        return None
    found = FAULTS.search(text)
    # A repeated word ("that that") is a fault, except a name, which may be called twice.
    if found and not (found.group(1) in NAMES):
        return text[max(0, found.start() - 40):found.end() + 40]
    if re.search(r"\n(?:%s)\b" % "|".join(NAMES), text):
        return "a paragraph begins with a name"
    good, why = judge(text)
    # Skips heroes with made-up names: judge() looks for known names, so it would take the friend for the hero.
    made_up = doc["quiet"] and text[slice(*doc["quiet"][0])] not in NAMES
    return None if good or made_up else why


def main() -> None:
    assert not set(BOYS) & set(GIRLS) and len(set(NAMES)) == len(NAMES)
    bad = 0
    for i in range(DOCUMENTS):
        doc = document(11, i)
        assert doc == document(11, i), "the text is not reproducible"
        why = fault(doc)
        if why:
            bad += 1
            print(f"document {i}: {why!r}")
    print(f"{DOCUMENTS} documents, {len(NAMES)} names, {len(PLOTS)} plots and {len(EXTRAS)} other kinds: {bad} faults")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
