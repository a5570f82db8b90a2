// The two dialogs: the keyboard, and the server's key.
import { setKey } from './server.js';

const byId = (id) => document.getElementById(id);

/** Closes with its buttons, Esc and a click beside it; the browser gives the focus back. */
function prepare(dialog) {
  dialog.addEventListener('click', (event) => {
    if (event.target === dialog || event.target.closest('[data-close]')) dialog.close();
  });
}

for (const dialog of document.querySelectorAll('dialog')) prepare(dialog);

export function showHelp() {
  if (!byId('help').open) byId('help').showModal();
}

/** Asks for the key; done() when one was entered. */
export function askKey(text, done) {
  const dialog = byId('key-dialog'), form = byId('key-form'), box = byId('key');
  byId('key-why').textContent = text;
  box.value = '';
  form.onsubmit = (event) => {
    event.preventDefault();
    setKey(box.value.trim(), byId('key-remember').checked);
    dialog.close();
    done();
  };
  if (!dialog.open) dialog.showModal();
  box.focus();
}
