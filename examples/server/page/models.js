// The server's models: the chosen model, the abilities of each, and the dialog to choose one.
import { el, icon } from './dom.js';
import { bytes, count, short } from './format.js';
import { getJson } from './server.js';
import { loadSetting, saveSetting } from './store.js';

// The server's names of abilities, in words for readers.
const ABILITIES = { tools: 'Calls tools', thinking: 'Thinks before it answers', insert: 'Fills in between texts', vision: 'Sees pictures', embedding: 'Embeds texts' };

export function abilitiesOf({ meta }) {
  const own = (meta.capabilities ?? []).filter((name) => name !== 'completion').map((name) => ABILITIES[name] ?? name);
  if (!writes({ meta })) return own;
  return [meta.has_chat_template === false ? 'Goes on from a text' : 'Answers messages', ...own];
}

export function factsOf({ meta }) {
  return [
    ['Context', meta.context_length && `${count(meta.context_length)} tokens`],
    ['Parameters', meta.parameters && short(meta.parameters)],
    ['Weights', meta.weights_bytes && bytes(meta.weights_bytes)],
    ['Vocabulary', meta.vocabulary && count(meta.vocabulary)],
    ['Architecture', meta.architecture],
  ].filter(([, value]) => value);
}

/** Returns whether a model writes texts. Returns true if the server, an older version, does not say so. */
function writes({ meta }) {
  return meta?.capabilities?.includes('completion') ?? true;
}

export class Models {
  constructor() {
    this.list = [];  // [{id, meta}] in the server's order
  }

  /** Asks the server; throws a Problem. */
  async load() {
    const { data } = await getJson('v1/models');
    this.list = data.map(({ id, meta, max_model_len: length }) => ({ id, meta: { ...meta, context_length: meta?.context_length ?? length } }));
  }

  /** Returns the model for a conversation: the model chosen there, else the model chosen last, else the first model that writes. */
  of(conversation) {
    const named = (id) => this.list.find((model) => model.id === id);
    return named(conversation.model) ?? named(loadSetting('model')) ?? this.list.find(writes) ?? this.list[0] ?? { id: '', meta: {} };
  }

  /** Shows the answering model on the button under the message box. */
  show(button, conversation) {
    if (!this.list.length) return;
    const { id } = this.of(conversation);
    button.replaceChildren(el('span', { class: 'name' }, id), icon('left'));
    button.classList.remove('away');
    button.title = `${id} answers. ${this.list.length > 1 ? 'Choose another model' : 'See what it can do'} (Alt+M)`;
  }

  showTrouble(button, problem) {
    button.textContent = problem.kind === 'key' ? 'A key is needed' : 'No server';
    button.title = problem.text ?? problem.message;
    button.classList.add('away');
  }

  /** Fills the dialog and opens it. Calls chosen(id) when another model was chosen. */
  choose(dialog, conversation, chosen) {
    const now = this.of(conversation);
    const gone = conversation.model && conversation.model !== now.id;
    dialog.querySelector('.choices').replaceChildren(...this.list.map((model, i) => {
      const input = el('input', { type: 'radio', name: 'model', value: model.id, id: `model-${i}`, 'aria-describedby': `model-${i}-facts` });
      input.checked = model === now;
      input.addEventListener('change', () => {
        saveSetting('model', model.id);
        chosen(model.id);
      });
      return el('div', { class: 'choice' }, input,
        el('label', { for: input.id }, model.id, el('span', { class: 'in-use' }, 'in use')),
        el('div', { class: 'about', id: `model-${i}-facts` },
          el('p', {}, abilitiesOf(model).join(' · ')),
          el('dl', {}, factsOf(model).map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value))))));
    }));
    dialog.querySelector('.hint').textContent = [
      gone && `“${conversation.model}” is not served now, so answers come from another model.`,
      this.list.length > 1 ? 'The one that you choose writes the next answers of this conversation; what was said stays.'
        : 'This server has one model. Start it with more files (-m) for more.',
    ].filter(Boolean).join(' ');
    if (!dialog.open) dialog.showModal();
    dialog.querySelector('input:checked')?.focus();
  }
}
