"""LangChain's standard tests of chat models (langchain-tests) for ChatOpenAI.

They are run by pytest: a test is a check.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

from . import Outcome

# Tests that ask of the model what no grammar can see to, with the error that says that it was the model. They are run, and any
# other error is a failure.
RIGHT, WANTS = 'the arguments must be right, and not only valid', 'the model must want to call a tool (tool_choice auto)'
NEEDS_A_BETTER_MODEL = {
    'test_agent_loop': (WANTS, 'assert False'),
    'test_bind_runnables_as_tools': (RIGHT + ' (it wrote an empty text)', 'AssertionError'),
    'test_json_mode': ('it must come to an end with its JSON object, which must have the fields that it was asked for', 'LengthFinishReasonError', 'OutputParserException'),
    'test_tool_calling': (RIGHT + ', and there must be one call', 'AssertionError', 'assert 2 == 1'),
    'test_tool_calling_async': (RIGHT + ', and there must be one call', 'AssertionError', 'assert 2 == 1'),
    'test_tool_calling_with_no_arguments': (WANTS, 'AssertionError'),
    'test_unicode_tool_call_integration': (RIGHT, 'AssertionError'),
}

TESTS = '''
import os
import langchain_openai
import pytest
from langchain_tests.integration_tests import ChatModelIntegrationTests


class TestServer(ChatModelIntegrationTests):
    @property
    def chat_model_class(self):
        return langchain_openai.ChatOpenAI

    @property
    def chat_model_params(self):
        return {"model": os.environ["CHECK_MODEL"], "base_url": os.environ["CHECK_URL"], "api_key": os.environ["CHECK_KEY"],
                "max_retries": 0, "temperature": 0, "max_tokens": 400, "use_responses_api": os.environ["CHECK_RESPONSES"] == "1", "store": False,
                "extra_body": {"frequency_penalty": 1.0},  # a small model says the same for ever within a JSON text
                **({"stream_usage": True} if os.environ["CHECK_RESPONSES"] == "0" else {})}

    @property
    def has_tool_choice(self):
        return True

    @property
    def supports_json_mode(self):
        return os.environ["CHECK_RESPONSES"] == "0"

    @property
    def supports_model_override(self):
        return False  # there is one model
'''


def outcomes(t, variant, _examples):
    return run_tests(t, TESTS, NEEDS_A_BETTER_MODEL, {'CHECK_URL': t.url + '/v1', 'CHECK_RESPONSES': str(int(variant == 'responses'))})


def run_tests(t, source, needs_a_better_model, more):
    """Runs a file of pytest's, with the environment CHECK_MODEL, CHECK_KEY and `more`."""
    with tempfile.TemporaryDirectory() as folder:
        test = pathlib.Path(folder, 'test_server.py')
        test.write_text(source)
        report = pathlib.Path(folder, 'report.xml')
        environment = {**os.environ, 'CHECK_MODEL': t.model, 'CHECK_KEY': t.key, **more}
        run = subprocess.run([sys.executable, '-m', 'pytest', '-q', '-p', 'no:cacheprovider', '-o', 'asyncio_mode=auto', '-o', 'asyncio_default_test_loop_scope=session',
                              '-o', 'asyncio_default_fixture_loop_scope=session', f'--junitxml={report}', str(test)],
                             env=environment, capture_output=True, text=True, cwd=folder)
        if not report.exists():
            return [Outcome('pytest', 'failed', (run.stdout + run.stderr)[-2000:])]
        results = []
        for case in xml.parse(report).iter('testcase'):
            test = case.get('name')
            why = next((child.get('message', '') for child in case if child.tag in ('failure', 'error', 'skipped')), '')
            state = 'passed'
            if any(child.tag in ('failure', 'error') for child in case):
                state = 'failed'
                needs = needs_a_better_model.get(test.split('[')[0])
                if needs and any(error in (why.splitlines() or [''])[0] for error in needs[1:]):
                    state, why = 'not applicable', f'of this model: {needs[0]}'
                else:
                    why = why + '\n' + ''.join(child.text or '' for child in case)[-3000:]
            elif any(child.tag == 'skipped' for child in case):
                state = 'not applicable'
            results.append(Outcome(test, state, why))
        return results
