// Reads a streamed chat completion: server-sent events (text/event-stream), as they come. Joins the events to the answer.
import { explain, problemOf, Problem, request } from './server.js';
import { addTokens } from './tokens.js';

/** Yields the `data:` of each event of a byte stream. An event may come in several pieces, and a piece may end within a character. */
export async function* readEvents(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = '', data = [];
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      buffer += value;
      let start = 0;
      for (let end; (end = buffer.indexOf('\n', start)) >= 0; start = end + 1) {
        const line = buffer.slice(start, buffer[end - 1] === '\r' ? end - 1 : end);
        if (line.startsWith('data:')) data.push(line.slice(line[5] === ' ' ? 6 : 5));
        else if (line === '' && data.length) {
          yield data.join('\n');
          data = [];
        }
      }
      buffer = buffer.slice(start);
    }
    if (data.length) yield data.join('\n');
  } finally {
    reader.cancel().catch(() => {});
  }
}

/**
 * Adds a chunk's delta to an answer {content, reasoning, toolCalls, finish, usage, model}. Adds the chunk's tokens, with their
 * probabilities, to `tokens`, if that is a list. Returns true if the answer has something new to show.
 */
export function addChunk(answer, chunk, tokens = null) {
  if (chunk.usage) {
    const { prompt_tokens = 0, completion_tokens = 0 } = chunk.usage;
    answer.usage = { prompt_tokens, completion_tokens };
  }
  if (typeof chunk.model === 'string') answer.model = chunk.model;
  const choice = chunk.choices?.[0];
  if (!choice) return false;
  const delta = choice.delta ?? {};
  let grew = false;
  const thought = delta.reasoning_content ?? delta.reasoning;
  if (tokens && choice.logprobs?.content && !thought) {
    addTokens(tokens, choice.logprobs.content);
    grew = choice.logprobs.content.length > 0;
  }
  if (typeof delta.content === 'string' && delta.content) {
    answer.content += delta.content;
    grew = true;
  }
  if (typeof thought === 'string' && thought) {
    answer.reasoning = (answer.reasoning ?? '') + thought;
    grew = true;
  }
  for (const call of delta.tool_calls ?? []) {
    answer.toolCalls ??= [];
    const at = Number.isInteger(call.index) && call.index >= 0 && call.index < 256 ? call.index : answer.toolCalls.length;
    while (answer.toolCalls.length <= at) answer.toolCalls.push({ name: '', arguments: '' });
    answer.toolCalls[at].name += call.function?.name ?? '';
    answer.toolCalls[at].arguments += call.function?.arguments ?? '';
    grew = true;
  }
  if (choice.finish_reason) answer.finish = choice.finish_reason;
  return grew;
}

/**
 * Runs a request. Adds the pieces to `answer`, and their tokens to `tokens` (null: no tokens wanted). Calls grew() after each piece, and
 * counted() when the server has sent the usage so far. Throws a Problem, or an AbortError if the signal was aborted.
 */
export async function streamCompletion(body, { answer, tokens, signal, grew, counted }) {
  const response = await request('v1/chat/completions', {
    method: 'POST', signal, headers: { 'Content-Type': 'application/json', Accept: 'text/event-stream' },
    body: JSON.stringify({ ...body, stream: true, stream_options: { include_usage: true, continuous_usage_stats: true } }),
  });
  if (!response.ok) throw await problemOf(response);
  try {
    for await (const data of readEvents(response.body)) {
      if (data === '[DONE]') return;
      let chunk;
      try {
        chunk = JSON.parse(data);
      } catch {
        throw new Problem('The server’s answer cannot be read', 'A piece of it is not JSON. What came before is kept.', 'other');
      }
      if (chunk.error) throw explain(Number(chunk.error.code) || 500, chunk.error);
      const more = addChunk(answer, chunk, tokens);
      if (chunk.usage) counted();
      if (more) grew();
    }
  } catch (error) {
    if (error.name === 'AbortError' || error instanceof Problem) throw error;
    throw cut();
  }
  if (!answer.finish) throw cut();
}

const cut = () => new Problem('The connection was cut',
  'The answer is not complete; what came is kept. See whether the server still runs, then try again.', 'network');
