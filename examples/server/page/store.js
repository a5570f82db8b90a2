// The browser's storage: each conversation has its own key in localStorage, so that a change writes only one conversation.
import { readFiles } from './attachments.js';
import { readConversation } from './conversation.js';

const PREFIX = 'tessera/';
const CONVERSATION = `${PREFIX}conversation/`;
const DRAFT = `${PREFIX}draft/`;

/** Stores a value. Returns null, or a sentence that says why the browser did not keep the value. */
function put(key, value) {
  try {
    localStorage.setItem(key, value);
    return null;
  } catch (error) {
    if (error.name !== 'QuotaExceededError') {
      return 'This browser keeps nothing for this page (a private window, or storage is switched off): export what you want to keep.';
    }
    return 'The storage that this browser gives the page is full: what changes now is lost when the page is closed. '
      + 'Export your conversations, then delete some.';
  }
}

function get(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function remove(key) {
  try {
    localStorage.removeItem(key);
  } catch {
    // The browser stores nothing, so there is nothing to remove.
  }
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Returns all conversations by id. Counts entries that cannot be read; they stay in the storage. */
export function loadConversations() {
  const found = new Map();
  let unreadable = 0;
  let keys = [];
  try {
    keys = Object.keys(localStorage);
  } catch {
    return { found, unreadable };
  }
  for (const key of keys) {
    if (!key.startsWith(CONVERSATION)) continue;
    const conversation = readConversation(parsed(get(key)));
    if (conversation) found.set(conversation.id, conversation);
    else ++unreadable;
  }
  return { found, unreadable };
}

export const loadConversation = (id) => readConversation(parsed(get(CONVERSATION + id)));
export const saveConversation = (conversation) => put(CONVERSATION + conversation.id, JSON.stringify(conversation));

export function removeConversation(id) {
  remove(CONVERSATION + id);
  remove(DRAFT + id);
}

/** Returns the id of the conversation that another window has changed, from a storage event; null for other changes. */
export const idOfChange = (event) => (event.key?.startsWith(CONVERSATION) ? event.key.slice(CONVERSATION.length) : null);

/** Returns the texts and files of a conversation that are not sent yet: {text, files, edits: {node: text}}. */
export function loadDraft(id) {
  const draft = parsed(get(DRAFT + id));
  const text = typeof draft?.text === 'string' ? draft.text : '';
  return { text, files: readFiles(draft?.files), edits: draft?.edits && typeof draft.edits === 'object' ? draft.edits : {} };
}

export function saveDraft(id, draft) {
  if (draft.text || draft.files.length || Object.keys(draft.edits).length) return put(DRAFT + id, JSON.stringify(draft));
  remove(DRAFT + id);
  return null;
}

export const loadSetting = (name) => parsed(get(PREFIX + name));
export const saveSetting = (name, value) => put(PREFIX + name, JSON.stringify(value));
export const removeSetting = (name) => remove(PREFIX + name);
