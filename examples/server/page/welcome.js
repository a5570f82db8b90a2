// The content of an empty conversation: the model, as the server describes it.
import { el, mark } from './dom.js';
import { abilitiesOf, factsOf } from './models.js';

export function welcome(model) {
  const { id, meta } = model;
  const facts = factsOf(model);
  const plain = meta.has_chat_template === false;
  return el('div', { class: 'welcome' }, mark(),
    el('h2', {}, plain ? 'Begin a text for ' : 'Ask ', el('span', {}, id || 'the model')),
    plain && el('p', {}, 'This model has no chat template: it was not made to answer, and goes on from what you write.'),
    facts.length > 0 && el('dl', {}, facts.map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value)))),
    facts.length > 0 && !plain && el('p', { class: 'abilities' }, abilitiesOf(model).join(' · ')),
    el('p', {}, 'Conversations are kept in this browser, and nowhere else. ', el('kbd', {}, '?'), ' lists the keys.'));
}
