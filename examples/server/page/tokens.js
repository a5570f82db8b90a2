// The tokens of answers with their probabilities, from the server's `logprobs`. The tokens are kept while the page is open, but not in the
// browser's storage, because with the alternatives they are thirty times as large as the text.

const kept = new Map();  // answer's id: [{text, bytes, logprob, top: [{text, bytes, logprob}]} or {plain: text}]

export const tokensOf = (node) => kept.get(node.id);
export const forgetTokens = (node) => kept.delete(node.id);

/** Returns a list for the tokens of a run. `plain`: the text in front of these tokens; its own tokens are not known. */
export function beginTokens(node, plain) {
  const list = kept.get(node.id) ?? (plain ? [{ plain }] : []);
  kept.set(node.id, list);
  return list;
}

/** Returns a token of the server's answer. `bytes` is null if the server does not send the bytes. */
export function readToken(value) {
  const bytes = Array.isArray(value.bytes) && value.bytes.every((byte) => Number.isInteger(byte) && byte >= 0 && byte < 256)
    ? Uint8Array.from(value.bytes) : null;
  return { text: String(value.token ?? ''), bytes, logprob: Number.isFinite(value.logprob) ? value.logprob : null };
}

export function addTokens(list, content) {
  for (const value of content) list.push({ ...readToken(value), top: (value.top_logprobs ?? []).map(readToken) });
}

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Returns the text of a token; null if its bytes are only a part of a character. */
export function wholeText({ text, bytes }) {
  if (!bytes) return text;
  try {
    return strict.decode(bytes);
  } catch {
    return null;
  }
}

export const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).toUpperCase().padStart(2, '0')).join(' ');

/** Returns a token's name for a reader: its text in quotes with visible blanks and line ends, or its bytes. */
export function nameOf(token) {
  const text = wholeText(token);
  if (text === null) return `bytes ${hex(token.bytes)}`;
  if (text === '') return 'a token without text';
  return `“${text.replaceAll('\n', '↵').replaceAll('\t', '⇥').replaceAll(' ', '␣')}”`;
}

const percent = new Intl.NumberFormat('en-US', { style: 'percent', maximumSignificantDigits: 3, maximumFractionDigits: 2, roundingPriority: 'lessPrecision' });

export function shareOf({ logprob }) {
  if (logprob === null) return 'not known';
  const share = Math.min(1, Math.exp(logprob));
  if (share < 0.0001) return 'under 0.01%';
  return share > 0.9999 && share < 1 ? 'over 99.99%' : percent.format(share);
}
