// Shows an answer as tokens, each shaded by its probability. If the reader points at a token, taps it or reaches it with the arrow keys, a
// card shows the alternatives at its place.
import { el } from './dom.js';
import { hex, nameOf, shareOf, wholeText } from './tokens.js';

// The least probability of each shade, and the shade's class. Lower probabilities have the class 'least'.
const SHADES = [[0.9, 'sure'], [0.5, 'likely'], [0.2, 'open'], [0.05, 'unlikely']];
const shadeOf = ({ logprob }) => (logprob === null ? 'unknown' : SHADES.find(([least]) => Math.exp(logprob) >= least)?.[1] ?? 'least');

export class TokenView {
  constructor() {
    this.flow = el('div', {
      class: 'tokens', role: 'listbox', 'aria-orientation': 'horizontal',
      'aria-label': 'Tokens of the answer. The arrow keys go from one to the next and tell its probability.',
    });
    this.card = el('div', { class: 'token-card', 'aria-hidden': 'true', hidden: true });  // hidden from screen readers, because the token's label says the same
    this.element = el('div', { class: 'token-view' }, this.flow, this.card);
    this.shown = 0;      // tokens that are drawn
    this.tokens = [];
    this.spans = new Map();  // element: token
    this.decoder = new TextDecoder('utf-8', { ignoreBOM: true });
    this.pinned = false;
    this.flow.addEventListener('pointerover', ({ target, pointerType }) => pointerType === 'mouse' && !this.pinned && this.look(target));
    this.flow.addEventListener('pointerleave', ({ pointerType }) => pointerType === 'mouse' && !this.pinned && this.hide());
    this.flow.addEventListener('click', ({ target }) => this.pin(target));
    this.flow.addEventListener('keydown', (event) => this.key(event));
    this.flow.addEventListener('focusin', ({ target }) => target.matches(':focus-visible') && this.look(target));
    this.element.addEventListener('focusout', ({ relatedTarget }) => !this.element.contains(relatedTarget) && this.hide());
  }

  /** Draws the tokens that came since the last call. */
  update(tokens) {
    if (tokens !== this.tokens) {
      this.tokens = tokens;
      this.shown = 0;
      this.spans.clear();
      this.flow.replaceChildren();
      this.decoder = new TextDecoder('utf-8', { ignoreBOM: true });
    }
    for (; this.shown < tokens.length; ++this.shown) this.flow.append(this.draw(tokens[this.shown]));
  }

  draw(token) {
    if ('plain' in token) return el('span', { class: 'plain', role: 'presentation', title: 'The probabilities of this part are not known.' }, token.plain);
    const whole = wholeText(token);
    // The characters that this token completes. A character that is cut in two belongs to the token with the second half.
    const text = token.bytes ? this.decoder.decode(token.bytes, { stream: true }) : token.text;
    const span = el('span', { class: `token ${shadeOf(token)}`, role: 'option', tabindex: this.spans.size ? -1 : 0, 'aria-selected': 'false' });
    if (whole === null) span.append(el('i', { class: 'bytes' }, hex(token.bytes)));
    const lines = text.split('\n');
    for (const [i, line] of lines.entries()) {
      if (i) span.append(el('i', { class: 'bytes' }, '↵'), '\n');
      span.append(line);
    }
    if (text === '' && whole !== null) span.append(el('i', { class: 'bytes' }, '∅'));
    span.setAttribute('aria-label', `${nameOf(token)}, ${shareOf(token)}`);
    this.spans.set(span, { token, text });
    return span;
  }

  key(event) {
    const spans = [...this.spans.keys()];
    const at = spans.indexOf(document.activeElement);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: spans.length - 1 }[event.key];
    if (event.key === 'Escape' && !this.card.hidden) {
      event.stopPropagation();
      event.preventDefault();
      this.hide();
    } else if (to !== undefined) {
      event.preventDefault();
      const span = spans[Math.max(0, Math.min(spans.length - 1, to))];
      span?.focus();
      this.look(span);
    } else if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      this.pin(document.activeElement);
    }
  }

  /** Keeps the card open after a click or tap. The next click on the same token closes the card. */
  pin(target) {
    const span = target.closest('.token');
    if (!span) return;
    const same = this.pinned && span === this.active;
    if (same) {
      this.hide();
      return;
    }
    this.look(span);
    this.pinned = true;
  }

  hide() {
    this.pinned = false;
    this.card.hidden = true;
    this.active?.setAttribute('aria-selected', 'false');
    this.active?.classList.remove('active');
  }

  look(target) {
    const span = target?.closest?.('.token');
    if (!span || !this.spans.has(span)) return;
    this.hide();
    for (const other of this.flow.querySelectorAll('[tabindex="0"]')) other.tabIndex = -1;
    span.tabIndex = 0;
    this.active = span;
    span.setAttribute('aria-selected', 'true');
    span.classList.add('active');
    const { token, text } = this.spans.get(span);
    const others = token.top.filter((other) => !sameToken(other, token));
    span.setAttribute('aria-label', `${nameOf(token)}, ${shareOf(token)}. ${others.length
      ? `Instead: ${others.map((other) => `${nameOf(other)}, ${shareOf(other)}`).join('; ')}` : 'No alternatives are known'}.`);
    this.fillCard(token, text);
    this.place(span);
  }

  fillCard(token, text) {
    const listed = token.top.some((other) => sameToken(other, token));
    const rows = [...token.top, ...(listed ? [] : [token])].map((other) => {
      const chosen = sameToken(other, token);
      const bar = el('i', { class: 'share' });
      bar.style.width = `${other.logprob === null ? 0 : Math.min(1, Math.exp(other.logprob)) * 100}%`;
      return el('li', { class: chosen ? 'chosen' : null }, el('span', { class: 'name' }, nameOf(other)),
        el('span', { class: 'percent' }, shareOf(other)), el('span', { class: 'bar' }, bar));
    });
    const notes = [];
    if (!token.top.length) notes.push('The server told no alternatives.');
    else if (!listed) notes.push(`It was not among the ${token.top.length} likeliest.`);
    if (wholeText(token) === null) {
      notes.push(`A part of a character: bytes ${hex(token.bytes)}.${/[^\ufffd]/.test(text) ? ` With what stands before it: ${text}` : ''}`);
    }
    if (!token.bytes) notes.push('The server gives no bytes: the text is as it names the token.');
    this.card.replaceChildren(el('ol', {}, rows), ...notes.map((note) => el('p', {}, note)));
    this.card.hidden = false;
  }

  /** Places the card under the token's last line, or above it if there is no room, within the view's width. */
  place(span) {
    const view = this.element.getBoundingClientRect();
    const line = [...span.getClientRects()].at(-1) ?? span.getBoundingClientRect();
    const height = this.card.offsetHeight, width = this.card.offsetWidth;
    const above = line.bottom + height + 12 > innerHeight && line.top - height > 60;
    this.card.style.top = `${(above ? line.top - height - 6 : line.bottom + 6) - view.top}px`;
    this.card.style.left = `${Math.max(0, Math.min(line.left - view.left, view.width - width))}px`;
  }
}

const sameToken = (a, b) => a.text === b.text && String(a.bytes) === String(b.bytes);
