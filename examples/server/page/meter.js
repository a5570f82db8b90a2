// Shows how many tokens of the model's context are taken. All numbers come from the server: `usage` of the present or last answer; for a
// prompt that is not sent yet, the count of /tokenize.
import { messagesTo, pathOf } from './conversation.js';
import { el } from './dom.js';
import { count } from './format.js';
import { getJson } from './server.js';

const PAUSE = 350;  // ms without typing before asking the server

const post = (body, signal) => getJson('tokenize', {
  method: 'POST', signal, headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body),
});

/** Returns the number of tokens of a text; null if the server does not say. */
export async function tokensIn(text, model) {
  try {
    const { count: tokens } = await post({ model, content: text, add_special_tokens: false, parse_special: false });
    return Number.isInteger(tokens) ? tokens : null;
  } catch {
    return null;
  }
}

export class Meter {
  constructor(place) {
    this.place = place;
    this.fill = el('i');
    this.text = el('span');
    place.append(el('span', { class: 'track' }, this.fill), this.text);
    this.counted = { key: '', tokens: null };  // the last prompt that the server counted
  }

  /**
   * Shows how many tokens of the context are taken. run: the answer that is being written, or null; draft: the typed message with its files, or '';
   * model: the model's name; length: the context's length in tokens, or null.
   */
  show({ conversation, run, draft, model, length }) {
    const path = pathOf(conversation);
    const last = path.at(-1);
    const usage = run ? run.node.usage : last?.role === 'assistant' && !last.edited && last.model === model ? last.usage : null;
    const changed = (conversation.systemSet ?? 0) > (last?.created ?? 0);
    if (usage && (run || (!draft && !changed))) {
      this.forget();
      const { prompt_tokens: prompt, completion_tokens: answer } = usage;
      this.draw(prompt + answer, length, `The prompt (${count(prompt)} tokens) and the answer${run ? ' so far' : ''} (${count(answer)}) take`);
      return;
    }
    if (run) return;  // this answer's usage comes at its end
    const messages = messagesTo(conversation, last);
    if (draft) messages.push({ role: 'user', content: draft });
    if (!messages.length) {
      this.forget();
      this.draw(0, length, 'The conversation takes');
      return;
    }
    const key = JSON.stringify([model, messages]);
    if (key !== this.counted.key) this.ask(key, { model, messages }, length);
    else if (this.counted.tokens !== null) this.drawPrompt(length);
  }

  forget() {
    clearTimeout(this.timer);
    this.asking?.abort();
    this.counted = { key: '', tokens: null };
  }

  ask(key, body, length) {
    this.forget();
    this.counted.key = key;
    const { signal } = this.asking = new AbortController();
    if (this.place.hidden || length !== this.length) this.draw(null, length, '');  // the tokens of the new model are not counted yet
    this.timer = setTimeout(async () => {
      try {
        const { count: tokens } = await post(body, signal);
        if (signal.aborted || !Number.isInteger(tokens)) return;
        this.counted.tokens = tokens;
        this.drawPrompt(length);
      } catch {
        // The server does not count tokens, or refuses these messages. If the reader sends them, the page shows the reason.
      }
    }, PAUSE);
  }

  drawPrompt(length) {
    this.draw(this.counted.tokens, length, 'The next prompt, with what is typed, takes');
  }

  /** Draws "`tokens` of `length`". Both may be null if they are not known. what: the beginning of the sentence. */
  draw(tokens, length, what) {
    this.length = length;
    this.place.hidden = tokens === null && !length;
    if (this.place.hidden) return;
    const share = length ? Math.min(1, (tokens ?? 0) / length) : 0;
    const over = Boolean(length && tokens >= length);
    this.fill.style.width = `${share * 100}%`;
    this.place.classList.toggle('high', share > 0.8);
    this.place.classList.toggle('over', over);
    const text = !length ? `${count(tokens)} tokens` : `${tokens === null ? '–' : count(tokens)} of ${count(length)} tokens`;
    const left = over ? ' No room is left for an answer: edit an earlier message, or begin a new conversation.'
      : length && tokens !== null ? ` ${count(length - tokens)} are left.` : '';
    this.text.textContent = over ? `${text}: full` : text;
    this.place.title = what ? `${what} ${text} of the model’s context.${left}` : `The model’s context: ${text}.`;
    this.place.setAttribute('aria-valuenow', String(Math.round(share * 100)));
    this.place.setAttribute('aria-valuetext', this.place.title);
  }
}
