#!/usr/bin/env python3
"""Answers under schemas, by a running tessera-server, judged by the jsonschema package: schemas_held.py URL [--runs 1000] [--at-once 8]
                                                                                                    [--max-tokens 400]

Each run has a seed and one of the schemas, hot (temperature 1.5) and not (0.7), with tools beside it in every fourth. Prints how many
answers are valid and the first that are not or that were cut; exit status 1 if one is wrong. Needs jsonschema and httpx (clients.py --venv).
"""
import argparse
import concurrent.futures
import json
import sys
import time

import httpx
import jsonschema

TEXT = {'type': 'string', 'maxLength': 24}
SCHEMAS = [
    {'type': 'object', 'required': ['name', 'age', 'tags'], 'additionalProperties': False, 'properties': {
        'name': TEXT, 'age': {'type': 'integer', 'minimum': 0, 'maximum': 120}, 'tags': {'type': 'array', 'items': TEXT, 'maxItems': 3}}},
    {'type': 'object', 'required': ['kind'], 'additionalProperties': False, 'properties': {
        'kind': {'enum': ['cat', 'dog', 'a "quoted" one', 'na\u00efve \u5abd']}, 'weight': {'type': 'number', 'exclusiveMinimum': 0, 'maximum': 99.5}}},
    {'type': 'array', 'minItems': 1, 'maxItems': 4, 'items': {'anyOf': [{'type': 'integer', 'multipleOf': 7, 'minimum': -70, 'maximum': 700}, {'type': 'null'}]}},
    {'oneOf': [{'type': 'object', 'required': ['circle'], 'additionalProperties': False, 'properties': {'circle': {'type': 'number', 'minimum': 0, 'maximum': 9}}},
               {'type': 'object', 'required': ['square'], 'additionalProperties': False, 'properties': {'square': {'type': 'integer', 'minimum': 1, 'maximum': 9}}}]},
    {'$defs': {'tree': {'type': 'object', 'required': ['value', 'children'], 'additionalProperties': False, 'properties': {
        'value': {'type': 'integer', 'minimum': 0, 'maximum': 9}, 'children': {'type': 'array', 'maxItems': 2, 'items': {'$ref': '#/$defs/leaf'}}}},
               'leaf': {'type': 'object', 'required': ['value'], 'additionalProperties': False, 'properties': {'value': {'enum': [1, 2, 3]}}}},
     '$ref': '#/$defs/tree'},
    {'type': 'object', 'required': ['when', 'id'], 'additionalProperties': False, 'properties': {
        'when': {'type': 'string', 'format': 'date'}, 'id': {'type': 'string', 'pattern': '^[a-f]{2}-[0-9]{1,3}$'}}},
    {'type': 'object', 'minProperties': 1, 'maxProperties': 2, 'additionalProperties': {'type': 'boolean'}, 'propertyNames': {'pattern': '^[a-z]{1,6}$'}},
    {'type': 'object', 'required': ['a'], 'additionalProperties': False, 'properties': {'a': {'type': 'boolean'}, 'b': TEXT, 'c': TEXT},
     'dependentRequired': {'b': ['c']}},
    {'type': 'object', 'required': ['x'], 'additionalProperties': False, 'properties': {
        'x': {'type': 'object', 'required': ['y'], 'additionalProperties': False, 'properties': {
            'y': {'type': 'array', 'prefixItems': [{'const': 'first'}, {'type': 'integer', 'minimum': 5, 'maximum': 6}], 'items': False, 'minItems': 2}}}}},
    {'type': 'string', 'minLength': 3, 'maxLength': 12, 'not': {'pattern': '^a'}},
]
TOOL = {'type': 'function', 'function': {'name': 'weather', 'parameters': {
    'type': 'object', 'required': ['city'], 'additionalProperties': False, 'properties': {'city': {'enum': ['Paris', 'Oslo']}}}}}


def one(client, url, run, max_tokens):
    """What came of a run: 'valid', 'call', 'cut: ...', or what is wrong."""
    schema = SCHEMAS[run % len(SCHEMAS)]
    body = {'messages': [{'role': 'user', 'content': f'Tell me about number {run} as JSON.'}], 'seed': run, 'max_tokens': max_tokens,
            'temperature': 1.5 if run % 2 else 0.7, 'response_format': {'type': 'json_schema', 'json_schema': {'name': 'it', 'schema': schema}}}
    if run // len(SCHEMAS) % 4 == 3:
        body['tools'] = [TOOL]
        body['parallel_tool_calls'] = False  # any number of calls is a list without an end
    answer = client.post(url + '/v1/chat/completions', json=body, timeout=600)
    if answer.status_code != 200:
        return f'status {answer.status_code}: {answer.text[:200]}'
    choice = answer.json()['choices'][0]
    if choice['finish_reason'] == 'length':
        return f'cut: {choice["message"]["content"]!r}, {len(choice["message"].get("tool_calls") or [])} calls'
    try:
        if choice['finish_reason'] == 'tool_calls':
            for call in choice['message']['tool_calls']:
                jsonschema.validate(json.loads(call['function']['arguments']), TOOL['function']['parameters'])
            return 'call'
        jsonschema.validate(json.loads(choice['message']['content']), schema, format_checker=jsonschema.FormatChecker())
    except (ValueError, KeyError, jsonschema.ValidationError) as error:
        return f'{type(error).__name__}: {str(error).splitlines()[0]} in {choice["message"]["content"]!r}'
    return 'valid'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('url')
    parser.add_argument('--runs', type=int, default=1000)
    parser.add_argument('--at-once', type=int, default=8)
    parser.add_argument('--max-tokens', type=int, default=400)
    options = parser.parse_args()
    url = options.url.rstrip('/')
    counts, cut, wrong, begin = {'valid': 0, 'call': 0}, [], [], time.monotonic()
    with httpx.Client() as client, concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
        for run, what in enumerate(pool.map(lambda run: one(client, url, run, options.max_tokens), range(options.runs))):
            if what in counts:
                counts[what] += 1
            else:
                (cut if what.startswith('cut: ') else wrong).append(f'run {run}: {what}')
    print(f'{options.runs} runs in {time.monotonic() - begin:.0f} s: {counts["valid"]} valid answers, {counts["call"]} valid calls, '
          f'{len(cut)} cut by max_tokens, {len(wrong)} wrong')
    print(*wrong[:10], *cut[:10], sep='\n')
    return int(bool(wrong))


if __name__ == '__main__':
    sys.exit(main())
