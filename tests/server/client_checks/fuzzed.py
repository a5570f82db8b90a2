"""Requests made from /openapi.json, right and wrong ones; answers must be as it says."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from . import Outcome

# What a request asks for is held short; what is wrong about it stays so.
HOOKS = '''
import schemathesis

FIELDS = {"/v1/chat/completions": "max_tokens", "/v1/completions": "max_tokens", "/v1/responses": "max_output_tokens", "/v1/messages": "max_tokens"}


@schemathesis.hook
def before_call(context, case, **kwargs):
    if case.operation.path in ("/api/chat", "/api/generate") and isinstance(case.body, dict) and "options" not in case.body:
        case.body["options"] = {"num_predict": 4}
    field = FIELDS.get(case.operation.path)
    if field is None or not isinstance(case.body, dict):
        return
    given = case.body.get(field)
    whole = type(given) is int or type(given) is float and given.is_integer()  # 1e3 is a number of tokens too
    if (field in case.body or case.operation.path != "/v1/messages") and (given is None or whole and given > 4):
        case.body[field] = 4
    if type(case.body.get("max_completion_tokens")) in (int, float):
        case.body["max_completion_tokens"] = min(case.body["max_completion_tokens"], 4)
'''
CHECKS = ['not_a_server_error', 'status_code_conformance', 'content_type_conformance', 'response_headers_conformance', 'response_schema_conformance',
          'negative_data_rejection', 'missing_required_header', 'unsupported_method', 'allow_header_conformance', 'ignored_auth']


def outcomes(t, _variant, examples):
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, 'hooks.py').write_text(HOOKS)
        checks = [each for each in CHECKS if t.key != 'none' or each != 'ignored_auth']
        command = [str(pathlib.Path(sys.executable).parent / 'schemathesis'), 'run', t.url + '/openapi.json', '--url', t.url, '--checks', ','.join(checks),
                   '--max-examples', str(examples), '--seed', '1', '--phases', 'examples,coverage,fuzzing', '--request-timeout', '120', '--no-color',
                   '--continue-on-failure', '--warnings', 'off', '--suppress-health-check', 'all']
        if t.key != 'none':
            command += ['-H', f'Authorization: Bearer {t.key}']
        run = subprocess.run(command, env={**os.environ, 'SCHEMATHESIS_HOOKS': 'hooks'}, capture_output=True, text=True, cwd=folder)
    said = re.search(r'Test cases:.*\n.*', run.stdout)
    what = re.sub(r'\s+', ' ', said.group(0)).strip() if said else 'requests'
    results = [Outcome('positive_data_acceptance', 'not applicable', 'what a schema cannot say is refused too: a prompt longer than the context, a call that is required without tools')]
    failed = run.returncode != 0
    results.append(Outcome(f'{len(checks)} kinds of checks; {what}', 'failed' if failed else 'passed', (run.stdout + run.stderr)[-12000:] if failed else ''))
    return results
