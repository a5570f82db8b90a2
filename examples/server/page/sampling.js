// The settings of a conversation's requests. An empty setting is not sent, so the server's default applies.
import { faultIn } from './json_fault.js';

// [name in the request, label, lowest, highest, step, description]
export const NUMBERS = [
  ['temperature', 'Temperature', 0, 2, 0.1, 'How freely tokens are drawn; 0 takes the likeliest.'],
  ['top_p', 'Top-p', 0, 1, 0.05, 'Draws from the likeliest tokens that make up this share.'],
  ['top_k', 'Top-k', 0, 1000000, 1, 'Draws from this many tokens; 0 from all.'],
  ['min_p', 'Min-p', 0, 1, 0.01, 'Leaves out what is less likely than this share of the likeliest.'],
  ['repetition_penalty', 'Repetition penalty', 0.01, 10, 0.05, 'Above 1, what occurred becomes less likely.'],
  ['frequency_penalty', 'Frequency penalty', -2, 2, 0.1, 'For each time that a token occurred.'],
  ['presence_penalty', 'Presence penalty', -2, 2, 0.1, 'Once for a token that occurred.'],
  ['max_tokens', 'Max tokens', 1, 10000000, 1, 'Where the answer is cut at the latest.'],
  ['seed', 'Seed', 0, Number.MAX_SAFE_INTEGER, 1, 'The same seed draws the same answer.'],
];

/** Returns the error of a typed number, or null. */
export function faultOf([, , low, high, step], text) {
  if (text.trim() === '') return null;
  const value = Number(text);
  if (!Number.isFinite(value)) return 'Not a number.';
  if (Number.isInteger(step) && !Number.isInteger(value)) return 'A whole number, please.';
  if (value < low || value > high) return high >= 1e6 ? `At least ${low}.` : `From ${low} to ${high}.`;
  return null;
}

/** Returns the place and error of a schema's text, or null. */
export function faultOfSchema(text) {
  if (!text.trim()) return 'Enter a schema, or switch it off.';
  try {
    const schema = JSON.parse(text);
    return schema && typeof schema === 'object' && !Array.isArray(schema) ? null : 'A JSON Schema is an object: { … }.';
  } catch {
    const fault = faultIn(text);
    if (!fault) return 'This is not JSON.';
    const before = text.slice(0, fault.at).split('\n');
    return `Not JSON yet: line ${before.length}, column ${before.at(-1).length + 1} wants ${fault.expected}.`;
  }
}

/** Reads stop sequences, one a line; \n in them means a line end. */
export const stopsOf = (text) => String(text).split('\n').filter(Boolean).map((line) => line.replaceAll('\\n', '\n'));

const ALTERNATIVES = 6;  // how many likeliest tokens the page asks for with each token

/** Returns the fields of the request. */
export function settingsOf({ sampling, schema, schemaOn, probabilities }) {
  const fields = {};
  for (const [name] of NUMBERS) if (typeof sampling[name] === 'number') fields[name] = sampling[name];
  const stops = stopsOf(sampling.stop ?? '');
  if (stops.length) fields.stop = stops;
  if (schemaOn && !faultOfSchema(schema)) {
    fields.response_format = { type: 'json_schema', json_schema: { name: 'answer', strict: true, schema: JSON.parse(schema) } };
  }
  if (probabilities) Object.assign(fields, { logprobs: true, top_logprobs: ALTERNATIVES });
  return fields;
}

/** Returns how many settings differ from the server's defaults. */
export function countOf({ sampling, system, schemaOn, probabilities }) {
  return Object.keys(sampling).length + Number(Boolean(system.trim())) + Number(schemaOn) + Number(probabilities);
}
