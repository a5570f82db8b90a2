// Short notes at the edge of the page, and messages for screen readers.
import { el, iconButton } from './dom.js';

const place = document.getElementById('notices');
const spoken = document.getElementById('spoken');

/** Shows a note. action: {label, run}. A `lasting` note, about a loss, stays until it is closed, and is shown only once. */
export function notify(text, { action = null, lasting = false } = {}) {
  for (const other of place.children) if (other.dataset.text === text) other.remove();
  let timer;
  const close = () => {
    clearTimeout(timer);
    note.remove();
  };
  const note = el('div', { class: lasting ? 'notice lasting' : 'notice', role: lasting ? 'alert' : 'status' }, el('span', {}, text),
    action && el('button', { type: 'button', class: 'text-button', on: { click: () => { close(); action.run(); } } }, action.label),
    iconButton('close', 'Close this note', close));
  note.dataset.text = text;
  place.append(note);
  if (!lasting) timer = setTimeout(close, action ? 8000 : 4000);
}

/** Makes a screen reader read the text after its present sentence. Cuts a long text, because the reader can go to the message itself. */
export function announce(text) {
  spoken.replaceChildren(el('p', {}, text.length > 1500 ? `${text.slice(0, 1500)} … The rest is in the message.` : text));
}
