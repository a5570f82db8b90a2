#!/usr/bin/env python3
"""A running tessera-server under the clients that people use: clients.py URL [--key KEY] [--venv FOLDER] [--only NAME] [--large] [--score "PROGRAM MODEL"]
[--table FILE]

They are installed from PyPI into virtual environments in FOLDER, or in a temporary one: an environment for each set of packages
that go together. --only has the checks whose name has NAME in it; a check's name is client_checks.MODULE.FUNCTION.
--large: also the clients that are gigabytes. --score: the built score_ids and the model that is served; its scores are to be lm-eval's.
--table FILE (bench/results/server.md) writes the rows of the clients that ran between the two lines of FILE that name this script, and leaves
the rows of others.
Exit status 1: something failed.
"""
import argparse
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import venv

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).parent
BEGIN, END = '<!-- The table of tests/server/clients.py begins. -->', '<!-- The table of tests/server/clients.py ends. -->'
HEAD = ['| client | version | what was tried | passed | failed | not applicable |', '|---|---|---|---|---|---|']
NEVER = {'litellm'}  # its packages were replaced by an attacker's in March 2026

ENVIRONMENTS = {
    'official': ['openai', 'anthropic', 'langchain-openai', 'langchain-tests', 'ollama', 'langchain-ollama', 'schemathesis', 'jsonschema', 'pytest', 'pytest-asyncio'],
    'agents': ['openai-agents', 'pydantic-ai-slim[openai,anthropic]', 'smolagents[openai]', 'haystack-ai', 'outlines[openai]', 'httpx'],
    'instructor': ['instructor', 'httpx'],
    'llama-index': ['llama-index-llms-openai-like', 'httpx'],
    'lm-eval': ['lm-eval[api]', 'httpx'],
    'open-webui': ['open-webui'],
}
LARGE = {'open-webui'}  # environments


@dataclasses.dataclass(frozen=True)
class Client:
    name: str  # as the table has it
    module: str  # of client_checks; the first line of its documentation says what is tried
    package: str  # whose version the table has
    environment: str
    variant: str = ''  # for a module that has outcomes(target, variant, examples) instead of check_ functions


CLIENTS = [
    Client('openai', 'openai_chat', 'openai', 'official'),
    Client('openai, Responses', 'openai_responses', 'openai', 'official'),
    Client('anthropic', 'anthropic_messages', 'anthropic', 'official'),
    Client('jsonschema', 'schemas', 'jsonschema', 'official'),
    Client("llama.cpp's checks", 'llama_cpp', 'httpx', 'official'),
    Client('langchain-openai', 'langchain', 'langchain-openai', 'official', 'chat'),
    Client('langchain-openai, Responses', 'langchain', 'langchain-openai', 'official', 'responses'),
    Client('ollama', 'ollama', 'ollama', 'official'),
    Client('langchain-ollama', 'langchain_ollama', 'langchain-ollama', 'official', 'ollama'),
    Client('openai-agents', 'openai_agents', 'openai-agents', 'agents'),
    Client('pydantic-ai', 'pydantic_agents', 'pydantic-ai-slim', 'agents'),
    Client('smolagents', 'smol_agents', 'smolagents', 'agents'),
    Client('haystack', 'haystack_pipelines', 'haystack-ai', 'agents'),
    Client('outlines', 'outlines_models', 'outlines', 'agents'),
    Client('instructor', 'instructor_models', 'instructor', 'instructor'),
    Client('llama-index', 'llama_index_like', 'llama-index-llms-openai-like', 'llama-index'),
    Client('lm-eval', 'lm_evaluation', 'lm-eval', 'lm-eval'),
    Client('open-webui', 'open_webui', 'open-webui', 'open-webui'),
    Client('schemathesis', 'fuzzed', 'schemathesis', 'official'),
]


def refuse_bad_packages(python, packages):
    """Asks what an installation would bring, and ends here if a package that is never installed is among it."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, 'report.json')
        subprocess.run([python, '-m', 'pip', 'install', '-q', '--disable-pip-version-check', '--dry-run', '--report', report, *packages], check=True)
        names = {each['metadata']['name'].lower() for each in json.loads(report.read_text())['install']}
    if names & NEVER:
        sys.exit(f'{" ".join(packages)} would install {", ".join(sorted(names & NEVER))}: leave out what needs it')


def python_of(environment, folder):
    python = pathlib.Path(folder, environment, 'bin/python')
    if not python.exists():
        venv.create(python.parent.parent, with_pip=True)
    refuse_bad_packages(python, ENVIRONMENTS[environment])
    subprocess.run([python, '-m', 'pip', 'install', '-q', '--disable-pip-version-check', *ENVIRONMENTS[environment]], check=True)
    return python


def run_module(target, client, module, options):
    from client_checks import NotApplicable, Outcome
    if hasattr(module, 'outcomes'):
        if options.only not in f'{module.__name__}.{client.variant}':
            return []
        results = module.outcomes(target, client.variant, options.examples)
        for outcome in results:
            show(client, outcome)
        return results
    results = []
    for name, check in list(vars(module).items()):
        if not name.startswith('check_') or options.only not in f'{module.__name__}.{name}':
            continue
        state, why = 'passed', ''
        try:
            check(target)
        except NotApplicable as reason:
            state, why = 'not applicable', str(reason)
        except Exception as error:  # a check that cannot go on has failed, whatever it met
            state, why = 'failed', f'{type(error).__name__}: {error}' + (f' ({str(error.__cause__)[:400]})' if error.__cause__ else '')
        results.append(Outcome(check.__doc__.splitlines()[0], state, why))
        show(client, results[-1])
    return results


def show(client, outcome):
    mark = {'passed': 'ok     ', 'failed': 'FAILED ', 'not applicable': 'n/a    '}[outcome.state]
    print(f'{mark} {client.name}: {outcome.name}' + (f'\n        {outcome.why}' if outcome.why else ''), flush=True)


def run_inside(environment, options):
    """Runs the clients of the environment that this Python belongs to, and returns a row a client."""
    import importlib
    import importlib.metadata
    sys.path.insert(0, str(HERE))
    from client_checks import Target
    target = Target(options.url.rstrip('/'), options.key, options.score.split())
    rows = []
    for client in CLIENTS:
        if client.environment != environment or not wanted(client, options.only):
            continue
        module = importlib.import_module(f'client_checks.{client.module}')
        outcomes = run_module(target, client, module, options)
        if outcomes:
            rows.append({'client': client.name, 'version': importlib.metadata.version(client.package), 'tried': module.__doc__.splitlines()[0].rstrip('.'),
                         'whole': not options.only, 'outcomes': [dataclasses.asdict(each) for each in outcomes]})
    return rows


def wanted(client, only):
    """Whether one of the client's checks can have `only` in its name, told without importing its module."""
    text = pathlib.Path(HERE, 'client_checks', client.module + '.py').read_text()
    functions = [line.split('(')[0][4:] for line in text.splitlines() if line.startswith('def check_')] or [client.variant]
    return any(only in f'client_checks.{client.module}.{function}' for function in functions)


def counts(row):
    return [sum(each['state'] == state for each in row['outcomes']) for state in ('passed', 'failed', 'not applicable')]


def table_line(row):
    return f'| {row["client"]} | {row["version"]} | {row["tried"]} | ' + ' | '.join(str(each) for each in counts(row)) + ' |'


def reasons(rows):
    lines = []
    for state in ('failed', 'not applicable'):
        for row in rows:
            lines += [f'- {state}: {row["client"]}, {each["name"]}: {(each["why"].strip().splitlines() or [""])[0]}' for each in row['outcomes'] if each['state'] == state]
    return lines


def with_rows(text, rows):
    """Returns `text` with the lines of `rows` between BEGIN and END, in the order of CLIENTS, beside those of clients that did not run."""
    before, inside = text.split(BEGIN, 1)
    inside, after = inside.split(END, 1)
    lines = {line.split(' | ')[0][2:]: line for line in inside.strip().splitlines()[2:]}
    lines.update({row['client']: table_line(row) for row in rows})
    order = [client.name for client in CLIENTS]
    return before + '\n'.join([BEGIN, *HEAD, *[lines[name] for name in order if name in lines], END]) + after


def run_all(options, folder):
    rows = []
    for environment in ENVIRONMENTS:
        if environment in LARGE and not options.large or not any(client.environment == environment and wanted(client, options.only) for client in CLIENTS):
            continue
        result = pathlib.Path(folder, f'{environment}.json')
        result.unlink(missing_ok=True)
        subprocess.run([python_of(environment, folder), __file__, *sys.argv[1:], '--inside', environment, str(result)], check=False)
        if not result.exists():
            sys.exit(f'the clients in "{environment}" did not come to their end')
        rows += json.loads(result.read_text())
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('url', help='of a running server, e.g. http://127.0.0.1:8080/')
    parser.add_argument('--key', default='none')
    parser.add_argument('--venv', help='a folder for the virtual environments, which are kept')
    parser.add_argument('--only', default='', help='checks whose name has this in it, e.g. "anthropic" or "openai_chat.check_async"')
    parser.add_argument('--large', action='store_true', help='also the clients that are gigabytes: ' + ', '.join(sorted(LARGE)))
    parser.add_argument('--score', default='', help='"PROGRAM MODEL": the built score_ids, and the file of the model that is served')
    parser.add_argument('--examples', type=int, default=40, help="schemathesis's requests an endpoint")
    parser.add_argument('--table', help='a Markdown file (bench/results/server.md) whose table gets the rows of the clients that ran; not with --only of single checks')
    parser.add_argument('--inside', nargs=2, help=argparse.SUPPRESS)  # the environment that this Python belongs to, a file for the rows
    options = parser.parse_args()
    if options.inside:
        pathlib.Path(options.inside[1]).write_text(json.dumps(run_inside(options.inside[0], options)))
        return 0
    if options.venv:
        pathlib.Path(options.venv).mkdir(parents=True, exist_ok=True)
        rows = run_all(options, options.venv)
    else:
        with tempfile.TemporaryDirectory() as folder:
            rows = run_all(options, folder)
    print('\n'.join(['', *HEAD, *map(table_line, rows), '', *reasons(rows)]))
    if options.table:
        file = pathlib.Path(options.table)
        file.write_text(with_rows(file.read_text(), rows))
    return int(not rows or any(counts(row)[1] for row in rows))


if __name__ == '__main__':
    sys.exit(main())
