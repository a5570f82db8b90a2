// The box for the next message, its files, and the settings that differ from the server's defaults.
import { fileList } from './attachments.js';
import { el, icon } from './dom.js';

export class Composer {
  /**
   * Connects the box in `form` with the page. actions: the functions that the box calls, {send(text), stop(), typed(text), attach(files),
   * detach(file), page(step), editLast()}. send() and editLast() return whether they succeeded.
   */
  constructor(form, actions) {
    this.actions = actions;
    this.box = form.querySelector('textarea');
    this.button = form.querySelector('.send');
    this.chips = form.querySelector('.chips');
    this.fileList = form.querySelector('.files');
    this.files = [];
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
    this.box.addEventListener('paste', (event) => {
      const { files } = event.clipboardData;
      // A copied table comes as a picture and as text. Pastes the text then, and does not attach the picture.
      if (!files.length || event.clipboardData.getData('text/plain')) return;
      event.preventDefault();
      actions.attach([...files]);
    });
    // A click on the frame puts the focus into the box.
    form.addEventListener('click', (event) => event.target === form && this.box.focus());
    this.setBusy(false);
  }

  key(event) {
    if (event.isComposing) return;
    // On a touch keyboard Enter is the only way to begin a new line, so it does not send.
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
    if (!(text.trim() || this.files.length) || !this.actions.send(text)) return;
    this.setText('');
    this.showFiles([]);
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
    this.button.disabled = !this.busy && !this.box.value.trim() && !this.files.length;
  }

  showFiles(files) {
    this.files = files;
    this.fileList.hidden = !files.length;
    this.fileList.replaceChildren(...fileList(files, (file) => {
      this.actions.detach(file);
      this.box.focus();
    }));
    this.updateButton();
  }

  /** Shows the settings that differ from the server's defaults: [[label, action]]. */
  showChips(chips) {
    this.chips.replaceChildren(...chips.map(([label, action]) =>
      el('button', { type: 'button', class: 'chip', on: { click: action } }, label)));
  }
}
