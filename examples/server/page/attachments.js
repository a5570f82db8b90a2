// Text files that are attached to a message: reads the files, refuses other files with a reason, and puts the texts into the message.
import { el, icon, iconButton } from './dom.js';
import { bytes, count } from './format.js';

export const MOST_BYTES = 1 << 20;  // the most bytes of a file
export const MOST_FILES = 20;       // the most files of a message

/** Returns the text of a file's bytes; null if the bytes are no text. A byte order mark shows that the text is UTF-16. */
function decode(data) {
  const marks = [['utf-16le', 0xff, 0xfe], ['utf-16be', 0xfe, 0xff]];
  const encoding = marks.find(([, first, second]) => data[0] === first && data[1] === second)?.[0] ?? 'utf-8';
  let text;
  try {
    text = new TextDecoder(encoding, { fatal: true }).decode(data);
  } catch {
    return null;
  }
  // A text has no control characters other than tab, line ends, form feed and escape.
  return /[\u0000-\u0008\u000b\u000e-\u001a\u001c-\u001f\u007f]/.test(text) ? null : text.replace(/\r\n?/g, '\n');
}

/**
 * Reads a file into {name, size, tokens, text}. Throws an Error with a sentence for the reader if the file is refused. tokensIn(text)
 * returns the number of tokens (null: not known). context: the most tokens that the model reads (null: not known).
 */
export async function readAttachment(file, tokensIn, context) {
  const name = plainName(file.name);
  if (file.size > MOST_BYTES) {
    throw new Error(`“${name}” has ${bytes(file.size)}; a file can have ${bytes(MOST_BYTES)} at most. Attach a part of it.`);
  }
  let data;
  try {
    data = new Uint8Array(await file.arrayBuffer());
  } catch {
    throw new Error(`“${name}” cannot be read. A folder cannot be attached; choose the files in it.`);
  }
  if (data.length === 0) throw new Error(`“${name}” is empty.`);
  const text = decode(data);
  if (text === null) throw new Error(`“${name}” is not a text file. Only text can be attached: this model reads no pictures, sounds or programs.`);
  const tokens = await tokensIn(text);
  if (tokens !== null && context && tokens >= context) {
    throw new Error(`“${name}” has ${count(tokens)} tokens; the model reads ${count(context)} in all. Attach a part of it.`);
  }
  return { name, size: data.length, tokens, text };
}

/** Returns the name on one line, without characters that would end a code block's first line. */
function plainName(name) {
  const plain = name.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}`]/gu, ' ').trim().slice(0, 200);
  return plain || 'file.txt';
}

/** Returns a file's part of the message: the file's name, and its text in a block whose fence is longer than all fences in the text. */
export function fenced({ name, text }) {
  let longest = 2;
  for (const [run] of text.matchAll(/`+/g)) longest = Math.max(longest, run.length);
  const fence = '`'.repeat(longest + 1);
  const language = /\.([A-Za-z0-9_+-]{1,16})$/.exec(name)?.[1].toLowerCase() ?? '';
  return `${name}:\n${fence}${language}\n${text}${text.endsWith('\n') ? '' : '\n'}${fence}`;
}

/** Returns the text for the model: the files, then the typed text. */
export const withFiles = (text, files) => [...(files ?? []).map(fenced), text].filter(Boolean).join('\n\n');

const factsOf = ({ size, tokens }) => `${bytes(size)}${tokens === null ? '' : ` · ${count(tokens)} ${tokens === 1 ? 'token' : 'tokens'}`}`;

/** Returns the files in parsed JSON, which may come from anywhere. Leaves out files that are not well-formed. */
export function readFiles(value) {
  if (!Array.isArray(value)) return [];
  return value.filter((file) => typeof file?.name === 'string' && typeof file.text === 'string').slice(0, MOST_FILES).map((file) => ({
    name: plainName(file.name), text: file.text,
    size: Number.isFinite(file.size) ? file.size : file.text.length, tokens: Number.isFinite(file.tokens) ? file.tokens : null,
  }));
}

/** Shows the files of a sent message, each of which can be opened. */
export function fileCards(files) {
  return el('div', { class: 'cards' }, files.map((file) => {
    const text = el('pre', { tabindex: 0, 'aria-label': `Text of ${file.name}` });
    const card = el('details', { class: 'card' },
      el('summary', {}, icon('file'), el('span', { class: 'name' }, file.name), el('span', { class: 'size' }, factsOf(file))), text);
    card.addEventListener('toggle', () => text.replaceChildren(card.open ? file.text : ''));
    return card;
  }));
}

/** Shows the files of a message that is being written. removed(file): called when the file's button was used. */
export function fileList(files, removed) {
  return files.map((file) => el('li', { class: 'attached' }, icon('file'), el('span', { class: 'name' }, file.name),
    el('span', { class: 'size' }, factsOf(file)), iconButton('close', `Remove ${file.name}`, () => removed(file))));
}
