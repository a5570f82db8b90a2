// The two dialogs: the keyboard, and the server's key.
import { setKey } from './server.js';

const byId = (id) => document.getElementById(id);

/** Makes a dialog close by its buttons, by Esc and by a click beside it. The browser then moves the focus back. */
function prepare(dialog) {
  dialog.addEventListener('click', (event) => {
    if (event.target === dialog || event.target.closest('[data-close]')) dialog.close();
  });
}

for (const dialog of document.querySelectorAll('dialog')) prepare(dialog);

export function showHelp() {
  if (!byId('help').open) byId('help').showModal();
}

const waiting = new Set();  // functions to call when the key was entered

/** Asks for the key, and calls done() when the key was entered. May be called again while the dialog is open. */
export function askKey(text, done) {
  const dialog = byId('key-dialog'), box = byId('key');
  byId('key-why').textContent = text;
  waiting.add(done);
  if (dialog.open) return;
  box.value = '';
  dialog.showModal();
  box.focus();
}

byId('key-form').addEventListener('submit', (event) => {
  event.preventDefault();
  setKey(byId('key').value.trim(), byId('key-remember').checked);
  const all = [...waiting];
  byId('key-dialog').close();
  for (const done of all) done();
});
byId('key-dialog').addEventListener('close', () => waiting.clear());
