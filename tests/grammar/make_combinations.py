#!/usr/bin/env python3
"""Random schemas with not, oneOf and if over lists and objects, judged by Python's jsonschema.

    make_combinations.py [COUNT [SEED [FILE]]]    with jsonschema 4.26; writes golden/combinations.json

A list of groups as the official suite has them: a schema, and instances with their verdicts. Schemas that none of the
instances satisfies are left out: some of them have no instance at all, which is an error of the library.
"""
import json
import pathlib
import random
import sys

import jsonschema

NAMES = ["a", "b", "c", "xa", "ab"]
VALUES = [None, True, 0, 1, 2.5, "", "a", "ab", [], [1], ["a"], [1, "a"], {}, {"a": 1}, {"b": "a"}, {"a": "a", "xa": 1}]


def scalar(r):
    return r.choice([
        {"type": "string"}, {"type": "integer"}, {"const": r.choice(VALUES)}, {"enum": r.sample(VALUES, 2)},
        {"type": ["string", "null"]}, {"minimum": 1}, {"minLength": 1}, {"type": "object"}, {"type": "array"}, True,
        {"type": "string", "pattern": "^a"}])


def of_object(r, part):
    out = {}
    if r.random() < .6:
        out["type"] = "object"
    if r.random() < .7:
        out["properties"] = {name: part() for name in r.sample(NAMES, r.randrange(1, 3))}
    if r.random() < .4:
        out["required"] = r.sample(NAMES, r.randrange(1, 3))
    if r.random() < .35:
        out["additionalProperties"] = r.choice([False, part()])
    if r.random() < .25:
        out["patternProperties"] = {r.choice(["^x", "a$", "^a"]): part()}
    if r.random() < .12:
        out["propertyNames"] = {"pattern": r.choice(["^a", "b"])}
    if r.random() < .12:
        out["minProperties"] = r.randrange(3)
    if r.random() < .12:
        out["maxProperties"] = r.randrange(1, 3)
    if r.random() < .1:
        out["dependentRequired"] = {r.choice(NAMES): [r.choice(NAMES)]}
    if r.random() < .08:
        out["dependentSchemas"] = {r.choice(NAMES): part()}
    return out


def of_array(r, part):
    out = {}
    if r.random() < .6:
        out["type"] = "array"
    if r.random() < .6:
        out["items"] = part()
    if r.random() < .25:
        out["prefixItems"] = [part() for _ in range(r.randrange(1, 3))]
    if r.random() < .25:
        out["contains"] = part()
    if r.random() < .2:
        out["minItems"] = r.randrange(3)
    if r.random() < .2:
        out["maxItems"] = r.randrange(1, 4)
    return out


def schema(r, depth):
    if depth <= 0:
        return scalar(r)

    def part():
        return schema(r, depth - 1 - r.randrange(2))

    kind = r.randrange(12)
    if kind <= 3:
        return of_object(r, part)
    if kind <= 5:
        return of_array(r, part)
    if kind == 6:
        return {"not": part()}
    if kind == 7:
        return {"oneOf": [part() for _ in range(r.randrange(2, 4))]}
    if kind == 8:
        out = {"if": part()}
        if r.random() < .8:
            out["then"] = part()
        if r.random() < .6:
            out["else"] = part()
        return out
    if kind == 9:
        return {r.choice(["anyOf", "allOf"]): [part(), part()]}
    if kind == 10:
        return {**schema(r, 1), "not": part()} if depth > 1 else {"not": part()}
    return {**schema(r, 1), "oneOf": [part(), part()]} if depth > 1 else {"oneOf": [part(), part()]}


def value(r, depth):
    kind = r.randrange(8)
    if depth <= 0 or kind < 3:
        return r.choice(VALUES)
    if kind < 5:
        return [value(r, depth - 1) for _ in range(r.randrange(4))]
    return {name: value(r, depth - 1) for name in r.sample(NAMES, r.randrange(4))}


def combines(s):
    text = json.dumps(s)
    return any(f'"{key}"' in text for key in ("not", "if", "oneOf"))


def group(r, most):
    s = schema(r, 3)
    if not isinstance(s, dict) or not combines(s):
        return None
    s = {"$schema": "https://json-schema.org/draft/2020-12/schema", **s}
    validator = jsonschema.Draft202012Validator(s)
    instances = {json.dumps(x): x for x in (value(r, 2) for _ in range(60))}
    tests = [{"data": x, "valid": validator.is_valid(x)} for x in instances.values()]
    valid = [t for t in tests if t["valid"]][:most]
    return {"schema": s, "tests": valid + [t for t in tests if not t["valid"]][:most]} if valid else None


def main(count=400, seed=1, path=None):
    r = random.Random(int(seed))
    groups = []
    while len(groups) < int(count):
        made = group(r, 5 if path is None else 20)
        if made is not None:
            groups.append(made)
    text = ",\n".join(json.dumps(g, separators=(",", ":")) for g in groups)
    (pathlib.Path(path) if path else pathlib.Path(__file__).parent / "golden/combinations.json").write_text(f"[{text}]\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
