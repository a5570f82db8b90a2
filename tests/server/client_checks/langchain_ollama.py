"""LangChain's standard tests of chat models and embeddings (langchain-tests), for langchain-ollama. Run by pytest: a test is a check."""
from . import langchain

RIGHT = 'the arguments must be right, and not only valid'
NEEDS_A_BETTER_MODEL = {
    'test_json_mode': ('it must choose the keys that the prompt names', 'OutputParserException'),
    'test_tool_calling': (RIGHT, 'AssertionError'),
    'test_tool_calling_async': (RIGHT, 'AssertionError'),
    'test_unicode_tool_call_integration': (RIGHT, 'AssertionError'),
}

TESTS = '''
import json
import os
import httpx
import langchain_ollama
from langchain_tests.integration_tests import ChatModelIntegrationTests, EmbeddingsIntegrationTests

BASE = {"model": os.environ["CHECK_MODEL"], "base_url": os.environ["CHECK_URL"], "client_kwargs": {"headers": {"Authorization": "Bearer " + os.environ["CHECK_KEY"]}}}


def forced(request, content):
    """Ollama's API cannot demand a call, and a small model does not call of itself: the server's tool_choice is put into the body."""
    body = json.loads(content or "{}")
    if body.get("tools") and body["messages"][-1]["role"] != "tool":
        body.update(tool_choice="required", parallel_tool_calls=False)
    headers = [(name, value) for name, value in request.headers.raw if name.lower() != b"content-length"]
    return httpx.Request(request.method, request.url, headers=headers, content=json.dumps(body).encode(), extensions=request.extensions)


class Forced(httpx.HTTPTransport):
    def handle_request(self, request):
        return super().handle_request(forced(request, request.read()))


class AsyncForced(httpx.AsyncHTTPTransport):
    async def handle_async_request(self, request):
        return await super().handle_async_request(forced(request, await request.aread()))


class TestChat(ChatModelIntegrationTests):
    @property
    def chat_model_class(self):
        return langchain_ollama.ChatOllama

    @property
    def chat_model_params(self):
        return {**BASE, "temperature": 0, "num_predict": 400, "repeat_penalty": 1.2,
                "sync_client_kwargs": {"transport": Forced()}, "async_client_kwargs": {"transport": AsyncForced()}}

    @property
    def has_tool_choice(self):
        return False

    @property
    def supports_json_mode(self):
        return True

    @property
    def supports_model_override(self):
        return False  # there is one model


class TestEmbeddings(EmbeddingsIntegrationTests):
    @property
    def embeddings_class(self):
        return langchain_ollama.OllamaEmbeddings

    @property
    def embedding_model_params(self):
        return {**BASE, "validate_model_on_init": True}
'''


def outcomes(t, _variant, _examples):
    return langchain.run_tests(t, TESTS, NEEDS_A_BETTER_MODEL, {'CHECK_URL': t.url})
