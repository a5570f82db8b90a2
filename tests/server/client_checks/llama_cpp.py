"""What llama.cpp's server tests (tools/server/tests/unit) promise of the APIs that both servers have."""
import json
import re

from . import NotApplicable, same

TALK = [{'role': 'system', 'content': 'Book'}, {'role': 'user', 'content': 'What is the best book'}]
TOOL = {'type': 'function', 'function': {'name': 'test', 'description': 'A test', 'parameters': {
    'type': 'object', 'properties': {'success': {'type': 'boolean', 'const': True}}, 'required': ['success']}}}


def ask(t, status=200, path='/v1/chat/completions', **body):
    if path.startswith('/v1/chat'):
        body = {'messages': TALK, 'max_tokens': 8, **body}
    answer = t.post(path, body)
    same(answer.status_code, status, f'the status of {json.dumps(body)[:200]} ({answer.text[:200]})')
    return answer.json()


def events(t, path='/v1/chat/completions', **body):
    text = t.post(path, {'messages': TALK, 'max_tokens': 8, 'stream': True, **body}).text
    data = [line[6:] for line in text.splitlines() if line.startswith('data: ')]
    return [json.loads(each) for each in data if each != '[DONE]']


def content(body):
    return body['choices'][0]['message']['content']


def check_content_parts(t):
    """chat: parts of a content are one text, and count as such"""
    parts = [TALK[0], {'role': 'user', 'content': [{'type': 'text', 'text': 'What is'}, {'type': 'text', 'text': ' the best book'}]}]
    same(content(ask(t, messages=parts, temperature=0)), content(ask(t, temperature=0)))


def check_stream_shape(t):
    """chat stream: one id, the role in the first chunk alone, no content beside a finish_reason"""
    chunks = events(t)
    same(len({chunk['id'] for chunk in chunks}), 1, 'ids')
    for i, chunk in enumerate(chunks):
        delta = chunk['choices'][0]['delta']
        same('role' in delta, i == 0, f'a role in chunk {i}')
        assert chunk['choices'][0]['finish_reason'] is None or 'content' not in delta


def check_prefill(t):
    """chat: a begun answer is gone on with"""
    begun = TALK + [{'role': 'assistant', 'content': 'Whill'}]
    prompt = ask(t, path='/apply-template', messages=begun, continue_final_message=True)['prompt']
    assert prompt.endswith('Whill'), prompt


def check_apply_template(t):
    """/apply-template: the messages in the prompt, and no answer"""
    prompt = ask(t, path='/apply-template', messages=TALK)['prompt']
    assert prompt.index('Book') < prompt.index('What is the best book')


def check_response_format(t):
    """chat: response_format, with a schema in each of its places; what is none is a 400"""
    for form, wanted in (({'type': 'json_object', 'schema': {'const': '42'}}, '"42"'),
                         ({'type': 'json_schema', 'json_schema': {'schema': {'const': 'foooooo'}}}, '"foooooo"'),
                         ({'type': 'json_object', 'schema': {'items': [{'type': 'integer'}]}}, ''),
                         ({'type': 'json_object'}, r'^\s*\{')):
        text = content(ask(t, response_format=form, max_tokens=16))
        assert re.search(wanted, text), (form, text)
    for form in ({'type': 'sound'}, {'type': 'json_object', 'schema': 123}, {'type': 'json_object', 'schema': {'type': 123}},
                 {'type': 'json_object', 'schema': {'type': 'hiccup'}}):
        assert 'error' in ask(t, 400, response_format=form)


def check_grammar(t):
    """chat and completions: grammar"""
    same(content(ask(t, grammar='root ::= "a"{5,5}', max_tokens=16)), 'aaaaa')
    same(ask(t, path='/v1/completions', prompt='x', grammar='root ::= "a"{5,5}', max_tokens=16)['choices'][0]['text'], 'aaaaa')
    ask(t, 400, grammar='root ::= (')


def check_invalid_messages(t):
    """chat: messages that are none are a 400"""
    for messages in (None, 'string', [123], [{}], [{'role': 123}], [{'role': 'system', 'content': 123}], [{'content': 'hello'}], [*TALK, {}]):
        assert 'error' in ask(t, 400, messages=messages)


def check_logprobs(t):
    """chat: the texts of log-probabilities are the answer, whole and streamed"""
    for chunked in (False, True):
        if chunked:
            chunks = events(t, logprobs=True, top_logprobs=10, temperature=0, max_tokens=5)
            choices = [chunk['choices'][0] for chunk in chunks]
            text = ''.join(choice['delta'].get('content') or '' for choice in choices)
            tokens = [token for choice in choices if choice['logprobs'] for token in choice['logprobs']['content']]
        else:
            choice = ask(t, logprobs=True, top_logprobs=10, temperature=0, max_tokens=5)['choices'][0]
            text, tokens = choice['message']['content'], choice['logprobs']['content']
        same(b''.join(bytes(token['bytes']) for token in tokens).decode(errors='ignore').strip(), text.strip())
        for token in tokens:
            assert token['logprob'] <= 0 and len(token['top_logprobs']) == 10


def check_logit_bias(t):
    """chat: tokens that /tokenize names and -100 bans do not come"""
    words = 'i I the The to a an be is was but But and And so So you You he He she She we We they They it It'.split()
    tokens = ask(t, path='/tokenize', content=' ' + ' '.join(words) + ' ', add_special_tokens=False)['tokens']
    text = content(ask(t, temperature=0, max_tokens=48, logit_bias={str(token): -100 for token in tokens}))
    assert text and not any(f' {word} ' in text for word in words), text


def check_context_exceeded(t):
    """chat: a prompt that is longer than the context is a 400, streamed too"""
    for more in ({}, {'stream': True}):
        error = ask(t, 400, messages=TALK * 2000, **more)['error']
        same(error['code'], 'context_length_exceeded')


def check_many_choices(t):
    """chat: n choices, each with its role and reason"""
    choices = ask(t, n=2)['choices']
    same([choice['index'] for choice in choices], [0, 1])
    for choice in choices:
        same(choice['message']['role'], 'assistant')


def check_seeds(t):
    """completions: one seed, one text; other seeds, other texts; a cached prompt changes nothing"""
    def text(seed):
        return ask(t, path='/v1/completions', prompt='I believe the meaning of life is', seed=seed, temperature=1, max_tokens=16)['choices'][0]['text']
    texts = [text(seed) for seed in range(4)]
    same(len(set(texts)), 4)
    for _ in range(3):
        same(text(2), texts[2])


def check_completion_prompts(t):
    """completions: a prompt as text or as tokens, one or several"""
    tokens = ask(t, path='/tokenize', content='I believe the meaning of life is')['tokens']
    def texts(prompt):
        return [choice['text'] for choice in ask(t, path='/v1/completions', prompt=prompt, temperature=0, max_tokens=8)['choices']]
    one = texts(tokens)
    same(texts([tokens, tokens]), one * 2)
    same(texts('I believe the meaning of life is'), one)


def check_completion_stops(t):
    """completions: a stop text ends the answer and is not in it, streamed too"""
    whole = ask(t, path='/v1/completions', prompt='Once upon a time', temperature=0, max_tokens=24)['choices'][0]['text']
    stop = whole[10:14]
    choice = ask(t, path='/v1/completions', prompt='Once upon a time', temperature=0, max_tokens=24, stop=[stop])['choices'][0]
    same((choice['text'], choice['finish_reason']), (whole[:whole.index(stop)], 'stop'))
    text = t.post('/v1/completions', {'prompt': 'Once upon a time', 'temperature': 0, 'max_tokens': 24, 'stop': [stop], 'stream': True}).text
    pieces = [json.loads(line[6:])['choices'] for line in text.splitlines() if line.startswith('data: {')]
    same(''.join(choices[0]['text'] for choices in pieces if choices), choice['text'])


def check_tokenize(t):
    """/tokenize and /detokenize: there and back, with BOS where the model has one"""
    text = 'What is the capital of France ?'
    tokens = ask(t, path='/tokenize', content=text, add_special_tokens=False)['tokens']
    assert len(tokens) > 5
    same(ask(t, path='/detokenize', tokens=tokens)['content'].strip(), text)
    unicode = 'This is a test string with unicode \u5abd and emoji \U0001f917'
    tokens = ask(t, path='/tokenize', content=unicode, add_special_tokens=False)['tokens']
    same(ask(t, path='/detokenize', tokens=tokens)['content'].strip(), unicode)


def check_required_call(t):
    """chat: a required call comes, has an id, and arguments that are JSON; streamed it is the same"""
    more = {'tools': [TOOL], 'tool_choice': 'required', 'max_tokens': 200, 'temperature': 0, 'parallel_tool_calls': False}
    message = ask(t, **more)['choices'][0]['message']
    assert not message['content'], message
    call = message['tool_calls'][0]
    assert call['id']
    same((call['type'], call['function']['name'], json.loads(call['function']['arguments'])), ('function', 'test', {'success': True}))
    deltas = [call for chunk in events(t, **more) for call in chunk['choices'][0]['delta'].get('tool_calls', [])]
    same(deltas[0]['function']['name'], 'test')
    same(json.loads(''.join(delta['function'].get('arguments', '') for delta in deltas)), {'success': True})


def check_no_call(t):
    """chat: without tools, and with tool_choice none, there is no call"""
    for more in ({}, {'tools': [TOOL], 'tool_choice': 'none'}, {'tools': []}):
        assert 'tool_calls' not in ask(t, **more)['choices'][0]['message']


def check_reasoning_budget(t):
    """chat: a budget for reasoning is taken, or refused by a model without any"""
    answer = t.post('/v1/chat/completions', {'messages': TALK, 'max_tokens': 8, 'thinking_token_budget': 4})
    if answer.status_code == 400:
        raise NotApplicable('this model has no reasoning')
    same(answer.status_code, 200)
    assert answer.json()['usage']['completion_tokens_details']['reasoning_tokens'] <= 4


def check_messages(t):
    """messages: blocks, usage, the order of a stream's events; a tool's result beside a text"""
    body = ask(t, path='/v1/messages', max_tokens=8, messages=TALK[1:], system='You are a helpful assistant.')
    same((body['type'], body['role'], body['content'][0]['type']), ('message', 'assistant', 'text'))
    assert body['stop_reason'] in ('end_turn', 'max_tokens') and body['usage']['output_tokens'] > 0
    assert isinstance(body['usage']['cache_read_input_tokens'], int)
    text = t.post('/v1/messages', {'max_tokens': 8, 'messages': TALK[1:], 'stream': True}).text
    names = [line[7:] for line in text.splitlines() if line.startswith('event: ') and line != 'event: ping']
    same([name for i, name in enumerate(names) if i == 0 or names[i - 1] != name],
         ['message_start', 'content_block_start', 'content_block_delta', 'content_block_stop', 'message_delta', 'message_stop'])
    result = [{'role': 'user', 'content': 'What is the weather?'},
              {'role': 'assistant', 'content': [{'type': 'tool_use', 'id': 'tool_1', 'name': 'get_weather', 'input': {'location': 'Paris'}}]},
              {'role': 'user', 'content': [{'type': 'text', 'text': 'Here are the results:'},
                                           {'type': 'tool_result', 'tool_use_id': 'tool_1', 'content': 'Sunny', 'is_error': True}]}]
    same(ask(t, path='/v1/messages', max_tokens=8, messages=result)['type'], 'message')


def check_count_tokens(t):
    """messages/count_tokens: input_tokens alone, without max_tokens"""
    body = ask(t, path='/v1/messages/count_tokens', messages=TALK[1:])
    same(list(body), ['input_tokens'])
    assert ask(t, path='/v1/messages/count_tokens', messages=TALK[1:], system='You are helpful. ' * 20)['input_tokens'] > body['input_tokens']


def check_embeddings(t):
    """embeddings: one for each text, of length 1, the same alone and beside others"""
    texts = ['I believe the meaning of life is', 'Write a joke about AI', 'This is a test']
    many = [each['embedding'] for each in ask(t, path='/v1/embeddings', input=texts)['data']]
    for text, vector in zip(texts, many):
        same(ask(t, path='/v1/embeddings', input=text)['data'][0]['embedding'], vector)
        assert abs(sum(x * x for x in vector) - 1) < 1e-3
    ask(t, 400, path='/v1/embeddings', input=[])


def check_public(t):
    """/health and the page need no key"""
    import httpx
    for path in ('/health', '/'):
        same(httpx.get(t.url + path, timeout=60).status_code, 200)
