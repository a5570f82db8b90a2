// One message on the page, with its actions.
import { fileCards } from './attachments.js';
import { choose, childrenOf } from './conversation.js';
import { CodeView } from './code_view.js';
import { copyFrom, el, icon, iconButton } from './dom.js';
import { count, digits, seconds } from './format.js';
import { canGoOn, rateOf } from './generation.js';
import { MarkdownView } from './markdown_view.js';
import { TokenView } from './token_view.js';
import { tokensOf } from './tokens.js';

const endings = {
  length: 'Stopped at the token limit: of the settings, of the server, or of the context.',
  stopped: 'Stopped.',
  interrupted: 'Interrupted: this answer is not complete.',
  content_filter: 'The server’s filter ended this answer.',
};

export class MessageView {
  /** actions: {edit, regenerate, branch, retry, goOn, shown, openSettings, askKey, draftOf, keepDraft} of the page. */
  constructor(conversation, node, actions) {
    Object.assign(this, { conversation, node, actions });
    this.user = node.role === 'user';
    this.body = el('div', { class: 'body' });
    this.tools = el('div', { class: 'tools', role: 'group', 'aria-label': 'Actions for this message' });
    const who = this.user ? 'You' : 'Answer';
    this.element = el('article', { class: `message ${node.role}`, 'aria-label': who, tabindex: -1, id: `at-${node.id}` },
      el('h2', { class: 'visually-hidden' }, who), this.body, this.tools);
    this.update(null);
  }

  /** run: the generation that writes this message, or null. */
  update(run) {
    this.run = run;
    if (this.editing) return;
    if (this.user) this.updateQuestion();
    else this.updateAnswer(run);
    this.element.setAttribute('aria-busy', String(Boolean(run)));
    if (!run || this.wasRunning !== Boolean(run)) this.updateTools(run);
    this.wasRunning = Boolean(run);
    if (run) this.updateFacts();
  }

  /** Shows the reader's text as it was typed. A long text scrolls, and the keyboard must be able to reach it. */
  updateQuestion() {
    const { content, files } = this.node;
    const said = content && el('div', { class: 'said', tabindex: content.length > 2000 && 0 }, content);
    this.body.replaceChildren(...[files?.length && fileCards(files), said].filter(Boolean));
  }

  updateAnswer(run) {
    const { node } = this;
    this.parts ??= {};
    const parts = this.parts;
    if (node.reasoning && !parts.thinking) {
      parts.thinkingTitle = el('span');
      parts.thought = new MarkdownView({ class: 'prose thought' });
      parts.thinking = el('details', { class: 'thinking' },
        el('summary', {}, icon('right'), parts.thinkingTitle), parts.thought.element);
      parts.thinking.addEventListener('toggle', () => this.updateThought());
      this.body.prepend(parts.thinking);
    }
    if (parts.thinking) {
      const busy = run && !node.content && !node.toolCalls;
      parts.thinking.classList.toggle('busy', Boolean(busy));
      const time = node.timing?.thought ?? (run && node.content ? run.thought : null);
      parts.thinkingTitle.textContent = busy ? 'Thinking' : time ? `Thought for ${seconds(time)}` : 'Thoughts';
      parts.thinking.hidden = !node.reasoning;
      this.updateThought();
    }
    this.updateText(run);
    this.updateCalls();
    this.updateEnd(run);
  }

  /** Draws the reasoning, only while it is open. */
  updateThought() {
    const { thinking, thought } = this.parts;
    if (thinking.open && this.node.reasoning) thought.update(this.node.reasoning, Boolean(this.run));
  }

  updateText(run) {
    const { node, parts } = this;
    if (run && !node.content && !node.reasoning && !node.toolCalls) {
      parts.waiting ??= el('div', { class: 'waiting', role: 'img', 'aria-label': 'Waiting for the first token' },
        el('i'), el('i'), el('i'));
      this.body.append(parts.waiting);
    } else {
      parts.waiting?.remove();
    }
    const tokens = this.conversation.probabilities ? tokensOf(node) : null;
    parts.tokens?.element.classList.toggle('writing', Boolean(run));
    if (tokens?.length) {
      if (!parts.tokens) {
        this.dropText();
        parts.tokens = new TokenView();
        this.body.append(parts.tokens.element);
      }
      parts.tokens.update(tokens);
      return;
    }
    if (parts.tokens) this.dropText();
    const asCode = node.json && /^\s*[[{]/.test(node.content);
    if (asCode) {
      if (!parts.code) {
        this.dropText();
        parts.code = new CodeView('json');
        this.body.append(parts.code.element);
      }
      let text = node.content;
      if (!run) {
        try {
          text = JSON.stringify(JSON.parse(text), null, 2);
        } catch {
          // An answer that was cut is shown as it is.
        }
      }
      parts.code.update(text.split('\n'));
      return;
    }
    if (!parts.text) {
      this.dropText();
      parts.text = new MarkdownView();
      this.body.append(parts.text.element);
    }
    parts.text.update(node.content, Boolean(run));
    parts.text.element.classList.toggle('writing', Boolean(run) && node.content !== '');
  }

  /** Prepares to draw the text in another way: as Markdown, JSON or tokens. */
  dropText() {
    for (const way of ['text', 'code', 'tokens']) {
      this.parts[way]?.element.remove();
      this.parts[way] = null;
    }
  }

  updateCalls() {
    const calls = this.node.toolCalls ?? [];
    const key = JSON.stringify(calls);
    if (key === this.parts.callsKey) return;
    this.parts.callsKey = key;
    this.parts.calls?.remove();
    if (!calls.length) return;
    this.parts.calls = el('div', { class: 'calls' }, calls.map((call) => {
      let text = call.arguments;
      try {
        text = JSON.stringify(JSON.parse(text), null, 2);
      } catch {
        // Not complete yet.
      }
      const code = new CodeView('json');
      code.update(text.split('\n'));
      return el('section', { class: 'call', 'aria-label': `Call of the tool ${call.name}` },
        el('p', {}, icon('tool'), 'The model asks for the tool ', el('strong', {}, call.name), '. This page runs none.'),
        code.element);
    }));
    this.body.append(this.parts.calls);
  }

  updateEnd(run) {
    const { node, parts } = this;
    parts.end?.remove();
    parts.end = null;
    clearInterval(this.countdown);
    if (run) return;
    if (node.problem) parts.end = this.problemBox(node.problem);
    else if (endings[node.finish]) parts.end = el('div', { class: 'end' }, el('p', { class: 'ending' }, endings[node.finish]), this.goOnButton());
    else if (!node.content && !node.toolCalls?.length) parts.end = el('p', { class: 'ending' }, 'The answer is empty.');
    if (parts.end) this.body.append(parts.end);
  }

  goOnButton() {
    const { node, conversation, actions } = this;
    if (!canGoOn(conversation, node)) return null;
    return el('button', {
      type: 'button', class: 'button', 'data-do': 'go-on', title: 'Go on with this answer where it ends (Alt+G)', on: { click: () => actions.goOn(node) },
    }, icon('onward'), 'Go on');
  }

  problemBox(problem) {
    const { actions, node } = this;
    const button = (label, click) => el('button', { type: 'button', class: 'button', on: { click } }, label);
    const retry = button('Try again', () => actions.retry(node));
    const wait = () => {
      const left = Math.ceil((problem.until - Date.now()) / 1000);
      retry.textContent = left > 0 ? `Try again (${left} s)` : 'Try again';
      if (left <= 0) clearInterval(this.countdown);
    };
    if (problem.until) {
      wait();
      this.countdown = setInterval(wait, 500);
    }
    return el('div', { class: 'problem' }, icon('alert'), el('div', {},
      el('strong', {}, problem.title), el('p', {}, problem.text),
      el('div', { class: 'row' }, retry, this.goOnButton(),
        problem.kind === 'key' && button('Enter a key', () => actions.askKey(problem.text, () => actions.retry(node))),
        (problem.kind === 'settings' || problem.kind === 'context') && button('Settings', actions.openSettings))));
  }

  updateTools(run) {
    const { node, conversation, actions } = this;
    this.facts = el('span', { class: 'facts' });
    const focused = this.tools.contains(document.activeElement) ? document.activeElement.dataset.do : null;
    const busy = this.actions.busy();
    const empty = !node.content && !node.toolCalls?.length && !node.files?.length;  // an empty message has "Try again" in it
    const copy = iconButton('copy', 'Copy this message', () => copyFrom(copy, node.content), { 'data-do': 'copy' });
    const tool = (name, drawn, label, action) => iconButton(drawn, label, action, { 'data-do': name });
    this.tools.replaceChildren(...[
      this.versions(busy),
      !run && node.content && copy,
      !busy && !empty && tool('edit', 'edit', this.user ? 'Edit and ask again' : 'Edit this answer', () => this.edit()),
      !busy && node.edited && canGoOn(conversation, node) && tool('go-on', 'onward', 'Go on where this answer ends', () => actions.goOn(node)),
      !busy && !this.user && !(empty && node.problem) && tool('again', 'again', 'Another answer', () => actions.regenerate(node)),
      !busy && !empty && tool('branch', 'branch', 'Go on from here in a new conversation', () => actions.branch(node)),
      this.facts,
    ].filter(Boolean));
    if (focused) this.tools.querySelector(`[data-do=${focused}]:enabled`)?.focus();
    this.updateFacts();
  }

  /** Makes the arrows between the versions of a message. */
  versions(busy) {
    const all = childrenOf(this.conversation, this.node.parent);
    if (all.length < 2) return null;
    const at = all.indexOf(this.node);
    const go = (step) => {
      choose(this.conversation, all[at + step]);
      this.actions.shown(all[at + step], step < 0 ? 'previous' : 'next');
    };
    return el('span', { class: 'versions' },
      iconButton('left', 'Previous version', () => go(-1), { disabled: at === 0 || busy, 'data-do': 'previous' }),
      el('span', { class: 'version', 'aria-label': `Version ${at + 1} of ${all.length}` }, `${at + 1}/${all.length}`),
      iconButton('right', 'Next version', () => go(1), { disabled: at === all.length - 1 || busy, 'data-do': 'next' }));
  }

  updateFacts() {
    if (this.user || !this.facts) return;
    const { node, run } = this;
    const rate = rateOf(node, run);
    const facts = [];
    if (node.edited) facts.push('edited');
    if (rate) facts.push(`${rate.exact ? '' : '≈ '}${digits(rate.rate)} tokens/s`);
    if (node.usage && !run) facts.push(`${count(node.written ?? node.usage.completion_tokens)} tokens`);
    if (node.timing && !run) facts.push(`first token after ${seconds(node.timing.first)}`);
    this.facts.textContent = facts.join(' · ');
  }

  edit() {
    if (this.editing) return;
    const { node, actions } = this;
    this.editing = true;
    const box = el('textarea', { class: 'edit-box', 'aria-label': this.user ? 'Edit your message' : 'Edit the answer', rows: 3 });
    box.value = actions.draftOf(node) ?? node.content;
    const cancel = () => {
      actions.keepDraft(node, null);
      this.endEdit();
      this.tools.querySelector('[data-do=edit]')?.focus();
    };
    const done = () => {
      if (!(box.value.trim() || node.files?.length) || actions.busy()) return;
      actions.keepDraft(node, null);
      this.endEdit();
      actions.edit(node, box.value);
    };
    box.addEventListener('input', () => actions.keepDraft(node, box.value));
    box.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') {
        event.stopPropagation();
        cancel();
      } else if (event.key === 'Enter' && !event.isComposing
        && (event.ctrlKey || event.metaKey || (this.user && !event.shiftKey))) {
        event.preventDefault();
        done();
      }
    });
    this.body.classList.add('editing');
    this.body.replaceChildren(box, el('div', { class: 'row end' },
      el('button', { type: 'button', class: 'button', on: { click: cancel } }, 'Cancel'),
      el('button', { type: 'button', class: 'button primary', on: { click: done } }, this.user ? 'Send' : 'Keep as a version')));
    this.tools.hidden = true;
    actions.keepDraft(node, box.value);
    box.focus();
    box.setSelectionRange(box.value.length, box.value.length);
  }

  endEdit() {
    this.editing = false;
    this.parts = null;
    this.body.classList.remove('editing');
    this.body.replaceChildren();
    this.tools.hidden = false;
    this.update(this.run);
  }
}
