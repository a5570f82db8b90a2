// Requests to the page's own server, and its errors in words. Addresses are relative, so that a proxy may serve
// the page under another path.
import { seconds } from './format.js';
import { loadSetting, removeSetting, saveSetting } from './store.js';

// The key is kept for this window only, unless the reader wants it to be kept for longer.
let key = sessionKey() ?? loadSetting('key') ?? '';

function sessionKey() {
  try {
    return sessionStorage.getItem('tessera/key');
  } catch {
    return null;
  }
}

export const hasKey = () => key !== '';

/** Sets the key. remember: keeps the key also when the browser is closed. */
export function setKey(value, remember) {
  key = value;
  try {
    sessionStorage.setItem('tessera/key', value);
  } catch {
    // The browser stores nothing: the key stays in memory.
  }
  if (remember && value) saveSetting('key', value);
  else removeSetting('key');
}

/** An error in words for the reader: {title, text, kind, retryAfter}. The text says what the reader can do. */
export class Problem extends Error {
  constructor(title, text, kind, retryAfter = null) {
    super(`${title}: ${text}`);
    Object.assign(this, { title, text, kind, retryAfter });
  }
}

export function request(path, options = {}) {
  const headers = { ...options.headers, ...(key ? { Authorization: `Bearer ${key}` } : {}) };
  return fetch(path, { ...options, headers, cache: 'no-store' }).catch((error) => {
    if (error.name === 'AbortError') throw error;
    throw new Problem('The server cannot be reached',
      `Nothing answers at ${location.host}. See whether tessera-server still runs and the network works, then try again.`,
      'network');
  });
}

export async function getJson(path, options) {
  const response = await request(path, options);
  if (!response.ok) throw await problemOf(response);
  return response.json();
}

const sentence = (text) => (/[.!?]$/.test(text) ? text : `${text}.`);

/** Makes a Problem of a response that is an error. */
export async function problemOf(response) {
  const body = await response.text().catch(() => '');
  let error = {};
  try {
    error = JSON.parse(body).error ?? {};
  } catch {
    error = { message: body.length < 300 && !body.trimStart().startsWith('<') ? body.trim() : '' };
  }
  const wait = Number.parseFloat(response.headers.get('Retry-After'));
  return explain(response.status, error, Number.isFinite(wait) ? wait : null);
}

/** Returns a Problem for an error. error: the object "error" in OpenAI's form. */
export function explain(status, error, retryAfter = null) {
  const said = typeof error.message === 'string' && error.message ? sentence(error.message) : '';
  const code = `${error.code ?? ''} ${error.type ?? ''}`;
  if (status === 401 || status === 403) {
    const refused = 'It does not accept the key that was given. Enter another one.';
    return new Problem('The server wants a key', hasKey() ? refused : 'Enter the API key that it was started with.', 'key');
  }
  if (status === 429) {
    const when = retryAfter ? `It asks to try again in ${seconds(retryAfter)}.` : 'Try again in a moment.';
    return new Problem('The server is busy', `${said} ${when} Your message is kept.`.trim(), 'busy', retryAfter);
  }
  if (status === 503) {
    return new Problem('The server takes no new requests',
      `${said || 'It is starting or shutting down.'} Your message is kept: try again when it is back.`, 'busy', retryAfter);
  }
  if (status === 400 && (code.includes('context_length') || /context (length|window|size)|too long|too many tokens/i.test(said))) {
    return new Problem('This does not fit the model’s context',
      `${said} Start a new conversation, edit an earlier message to be shorter, or ask for fewer tokens in the settings.`.trim(),
      'context');
  }
  if (status === 413) {
    return new Problem('The message is too large', `${said} Make it shorter, or start the server with a larger limit.`.trim(), 'context');
  }
  if (status === 400 || status === 422) {
    const field = typeof error.param === 'string' && error.param ? ` It is about “${error.param}”.` : '';
    return new Problem('The server did not accept the request',
      `${said || 'It gave no reason.'}${field} Change the settings or the message, then try again.`, 'settings');
  }
  if (status === 404) {
    return new Problem('The server does not know this', `${said || 'The address or the model is not there.'} Reload the page.`, 'other');
  }
  return new Problem('The server failed',
    `${said || `It answered with status ${status}.`} Try again; its log says more.`, 'other', retryAfter);
}
