#!/usr/bin/env python3
"""A running tessera-server under the clients that people use: clients.py URL [--key KEY] [--venv FOLDER] [--only NAME] [--table FILE]

openai (sync, async, streams, tools, parse, responses), anthropic, ollama, langchain-openai and -ollama by LangChain's standard tests, replies against
/openapi.json, and schemathesis. They are installed from PyPI into a virtual environment in FOLDER, or in a temporary one.
Exit status 1: something failed.
"""
import argparse
import importlib.metadata
import os
import pathlib
import subprocess
import sys
import tempfile
import venv

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).parent
PACKAGES = ['openai', 'anthropic', 'langchain-openai', 'langchain-tests', 'ollama', 'langchain-ollama', 'schemathesis', 'jsonschema', 'pytest', 'pytest-asyncio']


def start_inside(folder, arguments):
    python = pathlib.Path(folder, 'bin/python')
    if not python.exists():
        venv.create(folder, with_pip=True)
    subprocess.run([python, '-m', 'pip', 'install', '-q', '--disable-pip-version-check', *PACKAGES], check=True)
    return subprocess.run([python, __file__, *arguments], env={**os.environ, 'TESSERA_CLIENTS_INSIDE': '1'}, check=False).returncode


def run_module(target, client, module, only):
    from client_checks import NotApplicable, Outcome
    outcomes = []
    for name, check in list(vars(module).items()):
        if not name.startswith('check_') or only not in f'{module.__name__}.{name}':
            continue
        state, why = 'passed', ''
        try:
            check(target)
        except NotApplicable as reason:
            state, why = 'not applicable', str(reason)
        except Exception as error:  # a check that cannot go on has failed, whatever it met
            state, why = 'failed', f'{type(error).__name__}: {error}' + (f' ({str(error.__cause__)[:400]})' if error.__cause__ else '')
        outcomes.append(Outcome(client, check.__doc__.splitlines()[0], state, why))
        show(outcomes[-1])
    return outcomes


def show(outcome):
    mark = {'passed': 'ok     ', 'failed': 'FAILED ', 'not applicable': 'n/a    '}[outcome.state]
    print(f'{mark} {outcome.client}: {outcome.name}' + (f'\n        {outcome.why}' if outcome.why else ''), flush=True)


def run_all(target, only, examples):
    from client_checks import anthropic_messages, fuzzed, langchain, langchain_ollama, llama_cpp, ollama, openai_chat, openai_responses, schemas
    outcomes = []
    for client, module in (('openai', openai_chat), ('openai, Responses', openai_responses), ('anthropic', anthropic_messages), ('jsonschema', schemas),
                           ("llama.cpp's checks", llama_cpp), ('ollama', ollama)):
        outcomes += run_module(target, client, module, only)
    for responses in (False, True):
        if only in ('langchain', 'langchain responses' if responses else 'langchain chat', ''):
            for outcome in langchain.outcomes(target, responses):
                outcomes.append(outcome)
                show(outcome)
    if only in ('langchain', 'langchain ollama', ''):
        for outcome in langchain_ollama.outcomes(target):
            outcomes.append(outcome)
            show(outcome)
    if only in ('schemathesis', ''):
        for outcome in fuzzed.outcomes(target, examples):
            outcomes.append(outcome)
            show(outcome)
    return outcomes


def table(outcomes):
    package = {'openai': 'openai', 'openai, Responses': 'openai', 'jsonschema': 'jsonschema', 'anthropic': 'anthropic', 'ollama': 'ollama', 'schemathesis': 'schemathesis', "llama.cpp's checks": 'httpx'}
    lines = ['| Client | passed | failed | not applicable |', '|---|---|---|---|']
    for client in dict.fromkeys(outcome.client for outcome in outcomes):
        mine = [outcome for outcome in outcomes if outcome.client == client]
        count = {state: sum(outcome.state == state for outcome in mine) for state in ('passed', 'failed', 'not applicable')}
        version = importlib.metadata.version(package.get(client, 'langchain-tests'))
        lines.append(f'| {client} ({version}) | {count["passed"]} | {count["failed"]} | {count["not applicable"]} |')
    lines.append('')
    for state in ('failed', 'not applicable'):
        for outcome in outcomes:
            if outcome.state == state:
                lines.append(f'- {state}: {outcome.client}, {outcome.name}: {outcome.why.strip().splitlines()[0] if outcome.why.strip() else ""}')
    return '\n'.join(lines) + '\n'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('url', help='of a running server, e.g. http://127.0.0.1:8080/')
    parser.add_argument('--key', default='none')
    parser.add_argument('--venv', help='a folder for the virtual environment, which is kept')
    parser.add_argument('--only', default='', help='checks whose name has this in it; "langchain" and "schemathesis" are those')
    parser.add_argument('--examples', type=int, default=40, help="schemathesis's requests an endpoint")
    parser.add_argument('--table', help='a file for the table, as Markdown')
    options = parser.parse_args()
    if 'TESSERA_CLIENTS_INSIDE' not in os.environ:
        if options.venv:
            return start_inside(options.venv, sys.argv[1:])
        with tempfile.TemporaryDirectory() as folder:
            return start_inside(folder, sys.argv[1:])

    sys.path.insert(0, str(HERE))
    from client_checks import Target
    outcomes = run_all(Target(options.url.rstrip('/'), options.key), options.only, options.examples)
    print('\n' + table(outcomes))
    if options.table:
        pathlib.Path(options.table).write_text(table(outcomes))
    return int(not outcomes or any(outcome.state == 'failed' for outcome in outcomes))


if __name__ == '__main__':
    sys.exit(main())
