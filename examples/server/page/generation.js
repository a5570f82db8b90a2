// The answers that are being written, at most one for each conversation, shown or not. Events: 'begin', 'grow', 'count' (the server has
// sent the number of tokens) and 'end', with detail {conversation, node}.
import { addNode, childrenOf, messagesTo } from './conversation.js';
import { settingsOf } from './sampling.js';
import { Problem } from './server.js';
import { streamCompletion } from './stream.js';
import { beginTokens, forgetTokens } from './tokens.js';

const SAVE_EVERY = 1000;  // ms, while an answer is written

export class Generations extends EventTarget {
  /** save(conversation): stores a conversation. model(conversation): returns the model's name for requests. */
  constructor(save, model) {
    super();
    this.save = save;
    this.model = model;
    this.leaving = false;  // the page is being closed, so nothing is saved any more
    this.running = new Map();  // conversation's id: {node, controller, pieces, begun, first, last}
  }

  of(conversation) {
    return this.running.get(conversation.id);
  }

  tell(name, conversation, node) {
    this.dispatchEvent(new CustomEvent(name, { detail: { conversation, node } }));
  }

  /** Begins an answer to a user's node: as a new sibling, or in place of the empty answer `again`. */
  begin(conversation, question, again = null) {
    if (this.of(conversation)) return this.of(conversation).node;
    const settings = settingsOf(conversation);
    const fresh = { role: 'assistant', content: '', finish: null, json: 'response_format' in settings, model: this.model(conversation) };
    let node;
    if (again) {
      for (const key of ['problem', 'reasoning', 'toolCalls', 'usage', 'timing', 'written']) delete again[key];
      forgetTokens(again);
      node = Object.assign(again, fresh);
    } else {
      node = addNode(conversation, question.id, fresh);
    }
    this.start(conversation, node, { messages: messagesTo(conversation, question), ...settings });
    return node;
  }

  /** Continues an answer that was cut or stopped: the model gets it as the beginning of its own message. */
  goOn(conversation, node) {
    if (this.of(conversation) || !canGoOn(conversation, node)) return;
    const messages = messagesTo(conversation, conversation.nodes[node.parent]);
    messages.push({ role: 'assistant', content: node.content, ...(node.reasoning ? { reasoning_content: node.reasoning } : {}) });
    delete node.problem;
    // Without probabilities the continuation has no tokens. Forgets the tokens of the first part, which are not the whole answer's.
    if (!conversation.probabilities) forgetTokens(node);
    const written = node.written ?? node.usage?.completion_tokens ?? 0;
    Object.assign(node, { finish: null, model: this.model(conversation) });
    const body = { messages, continue_final_message: true, add_generation_prompt: false, ...settingsOf(conversation) };
    this.start(conversation, node, body, written);
  }

  /** written: tokens that the answer has already. */
  start(conversation, node, body, written = 0) {
    const now = performance.now();
    const run = { node, controller: new AbortController(), pieces: 0, begun: now, first: null, last: null, saved: now, written };
    this.running.set(conversation.id, run);
    this.save(conversation);
    this.tell('begin', conversation, node);
    this.run(conversation, run, { model: node.model, ...body });
  }

  async run(conversation, run, body) {
    const { node, controller } = run;
    const tokens = body.logprobs ? beginTokens(node, node.content) : null;
    try {
      const counted = () => this.tell('count', conversation, node);
      await streamCompletion(body, { answer: node, tokens, signal: controller.signal, counted, grew: () => {
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
      } });
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
    if (node.usage && run.written) node.written = run.written + (run.first === null ? 0 : node.usage.completion_tokens);
    this.running.delete(conversation.id);
    conversation.updated = Date.now();
    this.save(conversation);
    this.tell('end', conversation, node);
  }

  stop(conversation) {
    this.of(conversation)?.controller.abort();
  }
}

/** Returns whether an answer can be continued: no message follows, and the answer was edited or cut (by a limit, the reader or a fault). */
export function canGoOn(conversation, node) {
  const cut = ['length', 'stopped', 'interrupted'].includes(node.finish) || node.edited;
  return cut && node.role === 'assistant' && Boolean(node.content || node.reasoning) && !node.toolCalls?.length && !node.json
    && childrenOf(conversation, node.id).length === 0;
}

/** Returns the parts of an error that are stored with the answer. */
function problemFor(error) {
  if (!(error instanceof Problem)) {
    console.error(error);
    return { title: 'This page failed', text: `${error.message}. Reload it; your text is kept.`, kind: 'other', until: null };
  }
  const { title, text, kind, retryAfter } = error;
  return { title, text, kind, until: retryAfter ? Date.now() + retryAfter * 1000 : null };
}

/** Returns tokens a second: {rate, exact}. While an answer is written, or if it was stopped, each piece counts as a token. */
export function rateOf(node, run) {
  if (run) {
    const time = (run.last - run.first) / 1000;
    return run.pieces > 4 && time > 0 ? { rate: (run.pieces - 1) / time, exact: false } : null;
  }
  const tokens = node.usage?.completion_tokens ?? node.timing?.pieces;
  return node.timing?.total > 0 && tokens > 1 ? { rate: (tokens - 1) / node.timing.total, exact: Boolean(node.usage) } : null;
}
