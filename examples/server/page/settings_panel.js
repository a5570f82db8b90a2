// The settings of the shown conversation: system prompt, sampling, JSON Schema.
import { el } from './dom.js';
import { notify } from './notices.js';
import { faultOf, faultOfSchema, NUMBERS } from './sampling.js';

const NEUTRAL = { temperature: 1, top_p: 1, repetition_penalty: 1 };  // the value from which an empty box counts up or down
const EXAMPLE = `{
  "type": "object",
  "properties": {
    "name": { "type": "string" },
    "year": { "type": "integer" }
  },
  "required": ["name", "year"],
  "additionalProperties": false
}`;

export class SettingsPanel {
  /** changed(conversation): called after each change. keepDefaults(): makes new conversations begin with these settings. */
  constructor(place, { changed, keepDefaults }) {
    this.changed = changed;
    this.fields = new Map();
    this.system = el('textarea', {
      id: 'system', rows: 4, placeholder: 'You are a helpful assistant.',
      on: { input: () => this.set('system', this.system.value) },
    });
    this.stop = el('textarea', {
      id: 'stop', rows: 2, spellcheck: 'false', 'aria-describedby': 'stop-hint',
      on: { input: () => this.setSampling('stop', this.stop.value) },
    });
    this.schemaOn = el('input', {
      type: 'checkbox', id: 'schema-on', on: { change: () => this.set('schemaOn', this.schemaOn.checked) },
    });
    this.schema = el('textarea', {
      id: 'schema', rows: 10, spellcheck: 'false', class: 'mono', 'aria-label': 'JSON Schema', 'aria-describedby': 'schema-fault',
      on: { input: () => this.set('schema', this.schema.value) },
    });
    this.probabilities = el('input', {
      type: 'checkbox', id: 'probabilities-on', 'aria-describedby': 'probabilities-hint',
      on: { change: () => this.set('probabilities', this.probabilities.checked) },
    });
    this.schemaFault = el('p', { class: 'fault', id: 'schema-fault' });
    place.addEventListener('submit', (event) => event.preventDefault());
    place.append(
      el('section', {}, el('label', { class: 'heading', for: 'system' }, 'System prompt'), this.system),
      el('section', { 'aria-labelledby': 'sampling-title' }, el('h3', { id: 'sampling-title' }, 'Sampling'),
        el('p', { class: 'hint' }, 'What is empty is the server’s own choice.'),
        el('div', { class: 'numbers' }, NUMBERS.map((number) => this.number(number))),
        el('label', { for: 'stop' }, 'Stop sequences'), this.stop,
        el('p', { class: 'hint', id: 'stop-hint' }, 'One a line; \\n means a line end. The answer ends before the first that occurs.')),
      el('section', {}, el('label', { class: 'heading switch', for: 'schema-on' }, 'JSON Schema', this.schemaOn),
        el('p', { class: 'hint' }, 'While this is on, answers are JSON that fits the schema.'), this.schema, this.schemaFault,
        el('button', { type: 'button', class: 'text-button', on: { click: () => this.example() } }, 'Insert an example')),
      el('section', {}, el('label', { class: 'heading switch', for: 'probabilities-on' }, 'Tokens’ probabilities', this.probabilities),
        el('p', { class: 'hint', id: 'probabilities-hint' }, 'While this is on, answers are shown as their tokens. Point at one, tap it, or use '
          + 'the arrow keys to see what else might have stood there. The numbers are the model’s own, before sampling; they '
          + 'are kept until the page is closed.')),
      el('section', { class: 'row' },
        el('button', { type: 'button', class: 'button', on: { click: keepDefaults } }, 'Use for new conversations'),
        el('button', { type: 'button', class: 'button', on: { click: () => this.reset() } }, 'Clear all')));
  }

  number(number) {
    const [name, label, , , step, hint] = number;
    const id = `set-${name}`;
    const input = el('input', {
      id, type: 'text', inputmode: Number.isInteger(step) ? 'numeric' : 'decimal', placeholder: 'default', autocomplete: 'off',
      'aria-describedby': `${id}-hint ${id}-fault`,
      on: { input: () => this.typed(number), keydown: (event) => this.count(event, number) },
    });
    const fault = el('p', { class: 'fault', id: `${id}-fault` });
    this.fields.set(name, { input, fault });
    return el('div', { class: 'number' }, el('label', { for: id, title: hint }, label), input,
      el('p', { class: 'visually-hidden', id: `${id}-hint` }, hint), fault);
  }

  /** Makes the arrow keys count up and down, as in a number box. A real number box would hide text that is no number. */
  count(event, number) {
    if (event.key !== 'ArrowUp' && event.key !== 'ArrowDown') return;
    event.preventDefault();
    const [name, , low, high, step] = number;
    const { input } = this.fields.get(name);
    const now = input.value.trim() === '' ? NEUTRAL[name] ?? Math.max(low, 0) : Number(input.value);
    if (!Number.isFinite(now)) return;
    const next = Number((now + (event.key === 'ArrowUp' ? step : -step)).toFixed(4));
    input.value = String(Math.min(high, Math.max(low, next)));
    this.typed(number);
  }

  typed(number) {
    const [name] = number;
    const { input, fault } = this.fields.get(name);
    const wrong = faultOf(number, input.value);
    fault.textContent = wrong ?? '';
    input.setAttribute('aria-invalid', String(Boolean(wrong)));
    if (!wrong) this.setSampling(name, input.value.trim() === '' ? null : Number(input.value));
  }

  show(conversation) {
    this.conversation = conversation;
    this.system.value = conversation.system;
    this.stop.value = conversation.sampling.stop ?? '';
    this.schema.value = conversation.schema;
    this.schemaOn.checked = conversation.schemaOn;
    this.probabilities.checked = conversation.probabilities;
    for (const [name, { input, fault }] of this.fields) {
      input.value = conversation.sampling[name] ?? '';
      fault.textContent = '';
      input.setAttribute('aria-invalid', 'false');
    }
    this.checkSchema();
  }

  checkSchema() {
    const wrong = this.schemaOn.checked || this.schema.value.trim() ? faultOfSchema(this.schema.value) : null;
    this.schemaFault.textContent = wrong ?? '';
    this.schema.setAttribute('aria-invalid', String(Boolean(wrong)));
    return wrong;
  }

  set(name, value) {
    this.conversation[name] = value;
    if (name === 'system') this.conversation.systemSet = Date.now();
    if (name.startsWith('schema')) this.checkSchema();
    this.changed(this.conversation);
  }

  setSampling(name, value) {
    if (value === null || value === '') delete this.conversation.sampling[name];
    else this.conversation.sampling[name] = value;
    this.changed(this.conversation);
  }

  example() {
    this.schema.value = EXAMPLE;
    this.schemaOn.checked = true;
    this.conversation.schemaOn = true;
    this.set('schema', EXAMPLE);
  }

  reset() {
    const { conversation } = this;
    const { system, sampling, schema, schemaOn, probabilities } = conversation;
    const put = (settings) => {
      Object.assign(conversation, settings, { systemSet: Date.now() });
      if (this.conversation === conversation) this.show(conversation);
      this.changed(conversation);
    };
    put({ system: '', sampling: {}, schema: '', schemaOn: false, probabilities: false });
    notify('The settings are cleared.', { action: { label: 'Undo', run: () => put({ system, sampling, schema, schemaOn, probabilities }) } });
  }

  /** Returns whether the settings can be sent; if not, puts the focus on the wrong box. */
  ready() {
    if (!this.schemaOn.checked || !this.checkSchema()) return true;
    this.schema.focus();
    return false;
  }
}
