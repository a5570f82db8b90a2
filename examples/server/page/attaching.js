// Attaches files to a message: by the button, by a drop anywhere on the page, and (in composer.js) by a paste.
import { MOST_FILES, readAttachment } from './attachments.js';
import { tokensIn } from './meter.js';
import { announce, notify } from './notices.js';

/** Reads files into a list, for a model {id, meta}. Shows the reason for each refused file. */
export async function addFiles(list, files, { id, meta }) {
  const added = [];
  for (const file of files) {
    try {
      if (list.length >= MOST_FILES) throw new Error(`A message can have ${MOST_FILES} files. “${file.name}” is left out.`);
      list.push(await readAttachment(file, (text) => tokensIn(text, id), meta.context_length ?? null));
      added.push(list.at(-1).name);
    } catch (error) {
      notify(error.message, { lasting: true });
    }
  }
  if (added.length) announce(`Attached: ${added.join(', ')}.`);
}

const holdsFiles = (event) => event.dataTransfer?.types.includes('Files') && !document.querySelector('dialog[open]');

/** attach(files): called with chosen or dropped files. */
export function takeFiles({ button, input, shade }, attach) {
  button.addEventListener('click', () => input.click());
  input.addEventListener('change', () => {
    attach([...input.files]);
    input.value = '';
  });
  let depth = 0;  // elements that the pointer has entered and not yet left
  const show = (entered) => {
    depth = Math.max(0, entered);
    shade.hidden = depth === 0;
  };
  document.addEventListener('dragenter', (event) => holdsFiles(event) && show(depth + 1));
  document.addEventListener('dragleave', (event) => holdsFiles(event) && show(depth - 1));
  document.addEventListener('dragover', (event) => {
    if (!event.dataTransfer?.types.includes('Files')) return;
    event.preventDefault();  // otherwise the browser would leave the page and open the file
    event.dataTransfer.dropEffect = holdsFiles(event) ? 'copy' : 'none';
  });
  document.addEventListener('drop', (event) => {
    if (!event.dataTransfer?.types.includes('Files')) return;
    event.preventDefault();
    show(0);
    if (holdsFiles(event)) attach([...event.dataTransfer.files]);
  });
}
