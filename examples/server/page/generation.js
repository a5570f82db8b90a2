// Answers that are being written, one a conversation, also of conversations that are not shown. Events: 'begin', 'grow'
// and 'end', with detail {conversation, node}.
import { addNode, messagesTo } from './conversation.js';
import { settingsOf } from './sampling.js';
import { Problem } from './server.js';
import { streamCompletion } from './stream.js';

const SAVE_EVERY = 1000;  // ms, while an answer is written

export class Generations extends EventTarget {
  /** save(conversation): keeps it. model(): the name to ask for. */
  constructor(save, model) {
    super();
    this.save = save;
    this.model = model;
    this.leaving = false;  // the page is closed: what it saved last holds
    this.running = new Map();  // by the conversation's id: {node, controller, pieces, begun, first, last}
  }

  of(conversation) {
    return this.running.get(conversation.id);
  }

  tell(name, conversation, node) {
    this.dispatchEvent(new CustomEvent(name, { detail: { conversation, node } }));
  }

  /** Begins an answer to a user's node: a new sibling, or in the place of `again`, an answer in which nothing came. */
  begin(conversation, question, again = null) {
    if (this.of(conversation)) return this.of(conversation).node;
    const settings = settingsOf(conversation);
    const fresh = { role: 'assistant', content: '', finish: null, json: 'response_format' in settings, model: this.model() };
    let node;
    if (again) {
      for (const key of ['problem', 'reasoning', 'toolCalls', 'usage', 'timing']) delete again[key];
      node = Object.assign(again, fresh);
    } else {
      node = addNode(conversation, question.id, fresh);
    }
    const now = performance.now();
    const run = { node, controller: new AbortController(), pieces: 0, begun: now, first: null, last: null, saved: now };
    this.running.set(conversation.id, run);
    this.save(conversation);
    this.tell('begin', conversation, node);
    const body = { model: this.model(), messages: messagesTo(conversation, question), ...settings };
    this.run(conversation, run, body);
    return node;
  }

  async run(conversation, run, body) {
    const { node, controller } = run;
    try {
      await streamCompletion(body, node, controller.signal, () => {
        const now = performance.now();
        run.first ??= now;
        run.last = now;
        ++run.pieces;
        if (node.content && node.reasoning && run.thought === undefined) run.thought = (now - run.first) / 1000;
        if (now - run.saved > SAVE_EVERY) {
          run.saved = now;
          this.save(conversation);
        }
        this.tell('grow', conversation, node);
      });
    } catch (error) {
      if (this.leaving) return;
      if (error.name === 'AbortError') {
        node.finish = 'stopped';
      } else {
        node.finish = 'interrupted';
        node.problem = problemFor(error);
      }
    }
    node.finish ??= 'stop';
    if (run.first !== null) {
      const { begun, first, last, thought = null, pieces } = run;
      node.timing = { first: (first - begun) / 1000, total: (last - first) / 1000, thought, pieces };
    }
    this.running.delete(conversation.id);
    conversation.updated = Date.now();
    this.save(conversation);
    this.tell('end', conversation, node);
  }

  stop(conversation) {
    this.of(conversation)?.controller.abort();
  }
}

/** What is kept of an error with the answer. */
function problemFor(error) {
  if (!(error instanceof Problem)) {
    console.error(error);
    return { title: 'This page failed', text: `${error.message}. Reload it; your text is kept.`, kind: 'other', until: null };
  }
  const { title, text, kind, retryAfter } = error;
  return { title, text, kind, until: retryAfter ? Date.now() + retryAfter * 1000 : null };
}

/** Tokens a second: {rate, exact}. While an answer is written, or when it was stopped, a piece is taken for a token. */
export function rateOf(node, run) {
  if (run) {
    const time = (run.last - run.first) / 1000;
    return run.pieces > 4 && time > 0 ? { rate: (run.pieces - 1) / time, exact: false } : null;
  }
  const tokens = node.usage?.completion_tokens ?? node.timing?.pieces;
  return node.timing?.total > 0 && tokens > 1 ? { rate: (tokens - 1) / node.timing.total, exact: Boolean(node.usage) } : null;
}
