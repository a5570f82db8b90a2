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
  const plain = meta.has_chat_template === false;
  return el('div', { class: 'welcome' }, mark(),
    el('h2', {}, plain ? 'Begin a text for ' : 'Ask ', el('span', {}, id || 'the model')),
    plain && el('p', {}, 'This model has no chat template: it was not made to answer, and goes on from what you write.'),
    facts.length > 0 && el('dl', {}, facts.map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value)))),
    el('p', {}, 'Conversations are kept in this browser, and nowhere else. ', el('kbd', {}, '?'), ' lists the keys.'));
}
