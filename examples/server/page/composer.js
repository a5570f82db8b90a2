// The box for the next message, and what stands under it: model, speed, context.
import { el, icon } from './dom.js';
import { count } from './format.js';

export class Composer {
  /** actions: {send(text), stop(), typed(text), page(step), editLast()}: send and editLast say whether they did it */
  constructor(form, actions) {
    this.actions = actions;
    this.box = form.querySelector('textarea');
    this.button = form.querySelector('.send');
    this.chips = form.querySelector('.chips');
    this.meter = form.querySelector('.meter');
    this.fill = el('i');
    this.meterText = el('span');
    this.meter.append(el('span', { class: 'track' }, this.fill), this.meterText);
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      if (this.busy) actions.stop();
      else this.send();
    });
    this.box.addEventListener('input', () => {
      this.fit();
      actions.typed(this.box.value);
    });
    this.box.addEventListener('keydown', (event) => this.key(event));
    // A click on the frame is meant for the box.
    form.addEventListener('click', (event) => event.target === form && this.box.focus());
    this.setBusy(false);
  }

  key(event) {
    if (event.isComposing) return;
    // On a touch keyboard Enter is the only way to a new line.
    if (event.key === 'Enter' && !event.shiftKey && !matchMedia('(pointer: coarse)').matches) {
      event.preventDefault();
      if (!this.busy) this.send();
    } else if ((event.key === 'PageUp' || event.key === 'PageDown') && this.box.scrollHeight <= this.box.clientHeight) {
      event.preventDefault();
      this.actions.page(event.key === 'PageUp' ? -1 : 1);
    } else if (event.key === 'ArrowUp' && !this.box.value && !event.shiftKey && this.actions.editLast()) {
      event.preventDefault();
    }
  }

  send() {
    const text = this.box.value;
    if (!text.trim() || !this.actions.send(text)) return;
    this.setText('');
    this.box.focus();
  }

  setText(text) {
    this.box.value = text;
    this.fit();
    this.updateButton();
  }

  fit() {
    this.updateButton();
    if (CSS.supports('field-sizing', 'content')) return;
    this.box.style.height = 'auto';
    this.box.style.height = `${this.box.scrollHeight}px`;
  }

  setBusy(busy) {
    this.busy = busy;
    this.updateButton();
  }

  updateButton() {
    const label = this.busy ? 'Stop' : 'Send';
    if (this.button.dataset.label !== label) {
      this.button.dataset.label = label;
      this.button.setAttribute('aria-label', label);
      this.button.title = this.busy ? 'Stop (Esc)' : 'Send (Enter)';
      this.button.replaceChildren(icon(this.busy ? 'stop' : 'send'));
      this.button.classList.toggle('stop', this.busy);
    }
    this.button.disabled = !this.busy && !this.box.value.trim();
  }

  /** tokens: of the context of `length`; either may be unknown. */
  showContext(tokens, length) {
    this.meter.hidden = tokens === null && !length;
    if (this.meter.hidden) return;
    const share = length ? Math.min(1, (tokens ?? 0) / length) : 0;
    this.fill.style.width = `${share * 100}%`;
    this.meter.classList.toggle('high', share > 0.8);
    const text = length ? `${count(tokens ?? 0)} of ${count(length)} tokens` : `${count(tokens)} tokens`;
    this.meterText.textContent = text;
    this.meter.title = `The conversation takes ${text} of the model’s context.`;
    this.meter.setAttribute('aria-valuenow', String(Math.round(share * 100)));
    this.meter.setAttribute('aria-valuetext', text);
  }

  /** What differs from the server's defaults: [[label, action]]. */
  showChips(chips) {
    this.chips.replaceChildren(...chips.map(([label, action]) =>
      el('button', { type: 'button', class: 'chip', on: { click: action } }, label)));
  }
}
