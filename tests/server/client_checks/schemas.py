"""Replies against the schemas of /openapi.json."""
import json

import jsonschema

from . import same

HELLO = [{'role': 'user', 'content': 'Name three colours.'}]
TOOL_SCHEMA = {'type': 'object', 'additionalProperties': False, 'required': ['city'], 'properties': {'city': {'enum': ['Paris', 'Oslo']}}}
FUNCTION = {'name': 'get_weather', 'parameters': TOOL_SCHEMA}


def document(t):
    return t.get('/openapi.json').json()


def validator(t, name):
    return jsonschema.Draft202012Validator({'$ref': '#/components/schemas/' + name, 'components': document(t)['components']})


def agree(t, name, values):
    check = validator(t, name)
    for value in values:
        error = jsonschema.exceptions.best_match(check.iter_errors(value))
        assert error is None, f'{name}: {error.json_path}: {error.message}'


def whole(t, path, request, answer, body):
    agree(t, request, [body])
    reply = t.post(path, body)
    same((reply.status_code, reply.headers['content-type'].split(';')[0]), (200, 'application/json'), path)
    agree(t, answer, [reply.json()])


def stream(t, path, request, event, body):
    body = {**body, 'stream': True}
    agree(t, request, [body])
    reply = t.post(path, body)
    same((reply.status_code, reply.headers['content-type'].split(';')[0]), (200, 'text/event-stream'), path)
    data = [line[6:] for line in reply.text.splitlines() if line.startswith('data: ')]
    assert len(data) > 2, reply.text
    agree(t, event, [json.loads(each) for each in data if each != '[DONE]'])


def check_document(t):
    """/openapi.json: OpenAPI 3.1, its schemas are valid, its references lead somewhere"""
    doc = document(t)
    same(doc['openapi'], '3.1.0')
    for schema in doc['components']['schemas'].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    names = {'#/components/schemas/' + name for name in doc['components']['schemas']}
    text = json.dumps(doc)
    used = {part.split('"')[0] for part in text.split('"$ref": "')[1:]}
    same(used - names, set(), 'references without an end')


def check_paths(t):
    """/openapi.json: every path is answered, with methods that are not there refused with Allow"""
    import httpx
    for path, methods in document(t)['paths'].items():
        url = t.url + path.replace('{model}', t.model)
        for method in ('get', 'post', 'delete'):
            reply = httpx.request(method.upper(), url, headers={**t.headers, 'Content-Type': 'application/json'}, timeout=60)
            if method in methods:
                assert reply.status_code not in (404, 405), f'{method} {path}: {reply.status_code}'
            else:
                same((reply.status_code, method.upper() in reply.headers.get('allow', '')), (405, False), f'{method} {path}')


def check_chat(t):
    """chat completions: plain, logprobs, tools, n; whole and streamed"""
    base = {'messages': HELLO, 'max_tokens': 40, 'temperature': 0}
    for more in ({}, {'n': 2, 'logprobs': True, 'top_logprobs': 2}, {'tools': [{'type': 'function', 'function': FUNCTION}], 'tool_choice': 'required'}):
        whole(t, '/v1/chat/completions', 'ChatCompletionRequest', 'ChatCompletion', {**base, **more})
        stream(t, '/v1/chat/completions', 'ChatCompletionRequest', 'ChatCompletionChunk', {**base, **more, 'stream_options': {'include_usage': True}})


def check_completions(t):
    """completions: several prompts, logprobs; whole and streamed"""
    for more in ({}, {'logprobs': 2}, {'prompt': ['a', 'b'], 'n': 2}):
        body = {'prompt': 'Once', 'max_tokens': 6, **more}
        whole(t, '/v1/completions', 'CompletionRequest', 'Completion', body)
        stream(t, '/v1/completions', 'CompletionRequest', 'Completion', body)


def check_responses(t):
    """responses: plain, logprobs, tools, cut and not; whole and streamed"""
    base = {'input': 'Name three colours.', 'max_output_tokens': 40, 'temperature': 0, 'store': False}
    for more in ({}, {'include': ['message.output_text.logprobs'], 'top_logprobs': 1}, {'tools': [{'type': 'function', **FUNCTION}], 'tool_choice': 'required'},
                 {'text': {'format': {'type': 'json_schema', 'name': 'n', 'schema': {'type': 'boolean'}}}, 'reasoning': {'effort': 'low'}}):
        whole(t, '/v1/responses', 'ResponseRequest', 'Response', {**base, **more})
        stream(t, '/v1/responses', 'ResponseRequest', 'ResponseEvent', {**base, **more})


def check_messages(t):
    """messages and count_tokens: plain, tools; whole and streamed"""
    base = {'messages': HELLO, 'max_tokens': 40, 'temperature': 0}
    for more in ({}, {'tools': [{'name': 'get_weather', 'input_schema': TOOL_SCHEMA}], 'tool_choice': {'type': 'any'}}, {'stop_sequences': ['e']}):
        whole(t, '/v1/messages', 'MessagesRequest', 'MessagesAnswer', {**base, **more})
        stream(t, '/v1/messages', 'MessagesRequest', 'MessagesEvent', {**base, **more})
    whole(t, '/v1/messages/count_tokens', 'CountTokensRequest', 'CountedTokens', {'messages': HELLO})


def check_rest(t):
    """models, embeddings, tokenize, detokenize, tokenizer_info, apply-template, health, live, status.json"""
    agree(t, 'Models', [t.get('/v1/models').json()])
    agree(t, 'Model', [t.get('/v1/models/' + t.model).json()])
    whole(t, '/v1/embeddings', 'EmbeddingRequest', 'Embeddings', {'input': ['a', 'b']})
    whole(t, '/v1/embeddings', 'EmbeddingRequest', 'Embeddings', {'input': 'a', 'encoding_format': 'base64'})
    whole(t, '/tokenize', 'TokenizeRequest', 'Tokens', {'prompt': 'a cat'})
    whole(t, '/tokenize', 'TokenizeRequest', 'Tokens', {'messages': HELLO})
    whole(t, '/detokenize', 'DetokenizeRequest', 'Text', {'tokens': [1, 2]})
    agree(t, 'TokenizerInfo', [t.get('/tokenizer_info').json()])
    whole(t, '/apply-template', 'ApplyTemplateRequest', 'Text', {'messages': HELLO})
    agree(t, 'Ok', [t.get('/health').json(), t.get('/live').json()])
    agree(t, 'Status', [t.get('/status.json').json()])


def check_errors(t):
    """errors of OpenAI's and of Anthropic's APIs"""
    for path, name in (('/v1/chat/completions', 'Error'), ('/v1/responses', 'Error'), ('/tokenize', 'Error'), ('/v1/messages', 'MessagesError')):
        for body in ({}, {'messages': 3}, [], {'messages': [{'role': 3, 'content': 'a'}], 'input': 3, 'prompt': 3}):
            reply = t.post(path, body)
            assert 400 <= reply.status_code < 500, f'{path} {body}: {reply.status_code}'
            agree(t, name, [reply.json()])
