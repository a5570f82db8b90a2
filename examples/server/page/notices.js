// Short notes at the edge of the page, and what a screen reader is told.
import { el, iconButton } from './dom.js';

const place = document.getElementById('notices');
const spoken = document.getElementById('spoken');

/** action: {label, run}. A note about a loss (lasting) stays until it is closed, and is there once. */
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

/** Read aloud when the reader's own speech is done. Long text is cut: the message itself can be read at leisure. */
export function announce(text) {
  spoken.replaceChildren(el('p', {}, text.length > 1500 ? `${text.slice(0, 1500)} … The rest is in the message.` : text));
}
