// What stands in an empty conversation: the model, as the server describes it.
import { el, mark } from './dom.js';
import { bytes, count, short } from './format.js';

export function welcome({ id, meta }) {
  const facts = [
    ['Parameters', meta.parameters && short(meta.parameters)],
    ['Weights', meta.weights_bytes && bytes(meta.weights_bytes)],
    ['Context', meta.context_length && `${count(meta.context_length)} tokens`],
    ['Vocabulary', meta.vocabulary && count(meta.vocabulary)],
    ['Architecture', meta.architecture],
  ].filter(([, value]) => value);
  return el('div', { class: 'welcome' }, mark(), el('h2', {}, id ? ['Ask ', el('span', {}, id)] : 'Ask the model'),
    facts.length > 0 && el('dl', {}, facts.map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value)))),
    el('p', {}, 'Conversations are kept in this browser, and nowhere else. ', el('kbd', {}, '?'), ' lists the keys.'));
}
