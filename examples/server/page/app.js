// The page: chooses the conversation that is shown, and connects the parts of the page that change it.
import { addFiles, takeFiles } from './attaching.js';
import { withFiles } from './attachments.js';
import { Composer } from './composer.js';
import { addNode, forkAt, isEmpty, newConversation, pathOf, readConversation, titleOf } from './conversation.js';
import { askKey, showHelp } from './dialogs.js';
import { icon, mark } from './dom.js';
import { canGoOn, Generations } from './generation.js';
import { listen } from './keys.js';
import { lookSwitch } from './look.js';
import { Meter } from './meter.js';
import { Models } from './models.js';
import { announce, notify } from './notices.js';
import { Panels } from './panels.js';
import { countOf } from './sampling.js';
import { SettingsPanel } from './settings_panel.js';
import { Sidebar } from './sidebar.js';
import * as store from './store.js';
import { ThreadView } from './thread_view.js';
import { exportAll, exportMarkdown, readExport } from './transfer.js';
import { welcome } from './welcome.js';

const byId = (id) => document.getElementById(id);
const { found: conversations, unreadable } = store.loadConversations();
const deleted = new Set();    // ids of deleted conversations: answers that still run for them are not kept
let shown = null;             // the conversation on the page; in `conversations` once it has a message
let draft = null;             // text and files of `shown` that are not sent yet
const models = new Models();

const told = (trouble) => trouble && notify(trouble, { lasting: true });
const keepDraft = () => told(store.saveDraft(isEmpty(shown) ? 'new' : shown.id, draft));
const generations = new Generations(save, (conversation) => models.of(conversation).id);
const busy = () => Boolean(generations.of(shown));

function save(conversation) {
  if (deleted.has(conversation.id)) return;
  if (isEmpty(conversation)) {
    store.saveSetting('pending', conversation);
    return;
  }
  conversations.set(conversation.id, conversation);
  told(store.saveConversation(conversation));
}

// ---- Showing ----

function refresh() {
  thread.show(shown);
  composer.setBusy(busy());
  refreshAround();
}

/** Draws everything except the messages. */
function refreshAround() {
  sidebar.show([...conversations.values()], shown.id);
  const title = isEmpty(shown) ? 'New conversation' : titleOf(shown);
  byId('title').textContent = title;
  document.title = isEmpty(shown) ? 'Tessera' : `${title} · Tessera`;
  byId('export-one').hidden = isEmpty(shown);
  models.show(byId('model'), shown);
  showMeter();
  composer.showChips([
    shown.system.trim() && ['System prompt', () => openSetting('system')],
    shown.schemaOn && ['JSON Schema', () => openSetting('schema')],
    shown.probabilities && ['Tokens’ probabilities', () => openSetting('probabilities-on')],
    Object.keys(shown.sampling).length > 0 && ['Sampling', () => openSetting('set-temperature')],
  ].filter(Boolean));
  byId('open-settings').classList.toggle('changed', countOf(shown) > 0);
}

function showMeter() {
  const { id, meta } = models.of(shown);
  const typed = draft.text.trim() || draft.files.length ? withFiles(draft.text, draft.files) : '';
  meter.show({ conversation: shown, run: generations.of(shown) ?? null, draft: typed, model: id, length: meta.context_length ?? null });
}

function openSetting(id) {
  panels.open('settings');
  byId(id).scrollIntoView({ block: 'nearest' });
  byId(id).focus();
}

function pending() {
  return readConversation(store.loadSetting('pending')) ?? newConversation(store.loadSetting('defaults') ?? {});
}

/** Shows the conversation with this id, or a new conversation if there is none. */
function open(id, focus = true) {
  shown = conversations.get(id) ?? (shown && isEmpty(shown) ? shown : pending());
  draft = store.loadDraft(isEmpty(shown) ? 'new' : shown.id);
  const hash = isEmpty(shown) ? '' : `#${shown.id}`;
  if (location.hash !== hash) history.pushState(null, '', hash || location.pathname + location.search);
  settings.show(shown);
  composer.setText(draft.text);
  composer.showFiles(draft.files);
  refresh();
  thread.follow();
  // Opens the editors of messages that were being edited.
  for (const node of pathOf(shown)) if (node.id in draft.edits) thread.viewOf(node)?.edit();
  panels.closeOver();
  if (focus && !matchMedia('(pointer: coarse)').matches) composer.box.focus();
}

// ---- Actions ----

/** Adds the typed message and begins the answer. Returns false if the message was not sent; then it stays in the box. */
function ask(parent, text, files = []) {
  if (busy()) return false;
  if (!settings.ready()) {
    panels.open('settings');
    settings.ready();
    notify('The JSON Schema is not one yet: correct it, or switch it off.');
    return false;
  }
  const first = isEmpty(shown);
  if (first) {
    store.removeSetting('pending');
    store.saveDraft('new', { text: '', files: [], edits: {} });
  }
  const question = addNode(shown, parent, { role: 'user', content: text, ...(files.length ? { files } : {}) });
  generations.begin(shown, question);
  if (first) history.replaceState(null, '', `#${shown.id}`);
  thread.follow();
  return true;
}

/** Asks for another answer. It replaces an empty answer; otherwise it becomes a further version beside the old one. */
function again(node, replace) {
  if (busy() || !settings.ready()) return;
  generations.begin(shown, shown.nodes[node.parent], replace ? node : null);
  composer.box.focus();
}

/** Continues an answer that was cut, by default the conversation's last answer. Returns false if there is no such answer. */
function goOn(node = pathOf(shown).at(-1)) {
  if (busy() || !node || !canGoOn(shown, node)) return false;
  generations.goOn(shown, node);
  composer.box.focus();
  return true;
}

/** Reads files and attaches them to the next message. Shows the reason for each refused file. */
async function attach(files) {
  const into = draft, place = isEmpty(shown) ? 'new' : shown.id;
  await addFiles(into.files, files, models.of(shown));
  if (draft === into) {
    filesChanged();
    composer.box.focus();
  } else {
    told(store.saveDraft(place, into));
  }
}

function filesChanged() {
  composer.showFiles(draft.files);
  keepDraft();
  showMeter();
}

async function chooseModel() {
  await connect();
  if (!models.list.length) return;
  models.choose(byId('models'), shown, (id) => {
    shown.model = id;
    save(shown);
    refresh();
  });
}

const messageActions = {
  busy,
  openSettings: () => panels.open('settings'),
  askKey(text, done) {
    askKey(text, connect);
    askKey(text, done);
  },
  draftOf: (node) => draft.edits[node.id],
  keepDraft(node, text) {
    if (text === null) delete draft.edits[node.id];
    else draft.edits[node.id] = text;
    keepDraft();
  },
  edit(node, text) {
    if (node.role === 'user') {
      ask(node.parent, text, node.files);
      composer.box.focus();
      return;
    }
    const { id: _, parent, created: __, problem: ___, usage: ____, written: _____, ...kept } = structuredClone(node);
    const version = addNode(shown, parent, { ...kept, content: text, edited: true, finish: 'stop' });
    save(shown);
    refresh();
    thread.viewOf(version).element.focus();
  },
  regenerate: (node) => again(node, false),
  goOn,
  retry: (node) => again(node, !node.content && !node.reasoning && !node.toolCalls?.length),
  branch(node) {
    const fork = forkAt(shown, node);
    save(fork);
    open(fork.id);
    notify('This is a conversation of its own now.');
  },
  /** Call this when another version was chosen. Puts the focus on the arrow that was used, or on the other arrow at the last version. */
  shown(node, arrow) {
    save(shown);
    refresh();
    const tools = thread.viewOf(node).tools;
    const used = tools.querySelector(`[data-do=${arrow}]:enabled`);
    (used ?? tools.querySelector('[data-do=previous]:enabled, [data-do=next]:enabled'))?.focus();
  },
};

function remove(conversation) {
  generations.stop(conversation);
  deleted.add(conversation.id);
  conversations.delete(conversation.id);
  const kept = store.loadDraft(conversation.id);
  store.removeConversation(conversation.id);
  if (shown === conversation) open('');
  else refreshAround();
  notify(`“${titleOf(conversation)}” is deleted.`, { action: { label: 'Undo', run: () => {
    deleted.delete(conversation.id);
    save(conversation);
    store.saveDraft(conversation.id, kept);
    open(conversation.id);
  } } });
}

async function importFile(file) {
  try {
    const { taken, same, bad } = readExport(await file.text(), conversations);
    for (const conversation of taken) save(conversation);
    if (taken.length === 1) open(taken[0].id);
    else refreshAround();
    const parts = [`${taken.length} ${taken.length === 1 ? 'conversation is' : 'conversations are'} imported.`];
    if (same) parts.push(`${same} ${same === 1 ? 'was' : 'were'} here already.`);
    if (bad) parts.push(`${bad} could not be read.`);
    notify(parts.join(' '), { lasting: bad > 0 });
  } catch (error) {
    notify(error.message, { lasting: true });
  }
}

// ---- The server ----

async function connect() {
  try {
    await models.load();
    refresh();
  } catch (problem) {
    models.showTrouble(byId('model'), problem);
    if (problem.kind === 'key') askKey(problem.text, connect);
    else setTimeout(connect, 4000);
  }
}

generations.addEventListener('begin', ({ detail }) => detail.conversation === shown && refresh());
generations.addEventListener('grow', ({ detail }) => detail.conversation === shown && thread.grow(detail.node));
generations.addEventListener('count', ({ detail }) => detail.conversation === shown && showMeter());
generations.addEventListener('end', ({ detail: { conversation, node } }) => {
  if (conversation !== shown) {
    refreshAround();
    if (deleted.has(conversation.id)) return;
    const action = { label: 'Show', run: () => open(conversation.id) };
    notify(`The answer in “${titleOf(conversation)}” has ended.`, { action });
    return;
  }
  refresh();
  const body = thread.viewOf(node)?.body;
  const text = body?.querySelector('.prose:not(.thought)')?.textContent || node.content;
  announce(node.problem ? `${node.problem.title}. ${node.problem.text}` : `Answer: ${text}`);
  if (node.problem?.kind === 'key') messageActions.askKey(node.problem.text, () => messageActions.retry(node));
});

// ---- Parts ----

const places = { scroller: byId('scroller'), list: byId('messages'), composer: byId('composer') };
const thread = new ThreadView(places, messageActions, generations, () => welcome(models.of(shown)));
const meter = new Meter(document.querySelector('.meter'));
const composer = new Composer(byId('composer'), {
  send: (text) => {
    const { files } = draft;
    if (!ask(pathOf(shown).at(-1)?.id ?? null, text, files)) return false;
    Object.assign(draft, { text: '', files: [] });
    keepDraft();
    return true;
  },
  stop: () => generations.stop(shown),
  typed: (text) => {
    draft.text = text;
    keepDraft();
    showMeter();
  },
  attach,
  detach: (file) => {
    draft.files = draft.files.filter((other) => other !== file);
    filesChanged();
  },
  page: (step) => thread.page(step),
  editLast: () => {
    const last = pathOf(shown).findLast((node) => node.role === 'user');
    if (!last || busy()) return false;
    thread.viewOf(last).edit();
    return true;
  },
});
const sidebar = new Sidebar(byId('list'), byId('search'), {
  rename(conversation, title) {
    conversation.title = title;
    save(conversation);
    if (conversation === shown) refreshAround();
  },
  remove,
  open: (id) => open(id),
}, (conversation) => Boolean(generations.of(conversation)));
const settings = new SettingsPanel(byId('settings-form'), {
  changed(conversation) {
    save(conversation);
    if (conversation === shown && thread.probabilities !== shown.probabilities) refresh();
    else refreshAround();
  },
  keepDefaults() {
    const { system, sampling, schema, schemaOn, probabilities } = shown;
    told(store.saveSetting('defaults', { system, sampling, schema, schemaOn, probabilities }));
    notify('New conversations begin with these settings.');
  },
});
const panels = new Panels({
  sidebar: {
    panel: byId('sidebar'),
    buttons: [byId('open-sidebar'), byId('close-sidebar')],
    // On a touch screen, focus on the search box would bring the keyboard up.
    focus: () => byId(matchMedia('(pointer: coarse)').matches ? 'close-sidebar' : 'search').focus(),
  },
  settings: {
    panel: byId('settings'),
    buttons: [byId('open-settings'), byId('close-settings')],
    focus: () => byId('system').focus(),
  },
}, byId('middle'), byId('shade'));

function create() {
  open('');
  composer.box.focus();
}

for (const node of document.querySelectorAll('[data-icon]')) node.prepend(icon(node.dataset.icon));
byId('brand').prepend(mark());
lookSwitch(byId('look'));
byId('new').addEventListener('click', create);
byId('open-help').addEventListener('click', showHelp);
byId('export').addEventListener('click', () => exportAll(conversations.values()) || notify('There is nothing to export yet.'));
byId('export-one').addEventListener('click', () => exportMarkdown(shown));
byId('model').addEventListener('click', chooseModel);
takeFiles({ button: byId('attach'), input: byId('attach-file'), shade: byId('drop') }, attach);
byId('import').addEventListener('click', () => byId('file').click());
byId('file').addEventListener('change', async ({ target }) => {
  if (target.files[0]) await importFile(target.files[0]);
  target.value = '';
});
byId('skip').addEventListener('click', (event) => {
  event.preventDefault();
  composer.box.focus();
});
listen({
  stop: () => busy() && (generations.stop(shown), true),
  search: () => {
    panels.open('sidebar');
    byId('search').focus();
    byId('search').select();
  },
  help: showHelp,
  create,
  settings: () => panels.toggle('settings'),
  attach: () => byId('attach').click(),
  goOn: () => goOn(),
  models: chooseModel,
  focusBox: () => composer.box.focus(),
  closeOver: () => panels.closeOver(),
});
window.addEventListener('popstate', () => open(location.hash.slice(1)));
window.addEventListener('pagehide', () => {
  for (const id of generations.running.keys()) save(conversations.get(id));
  generations.leaving = true;  // the browser cuts requests now, so their errors are not the server's
});
window.addEventListener('pageshow', () => {
  generations.leaving = false;
});
// If another window has changed a conversation, shows the change here too. Exception: this window is writing to the conversation.
window.addEventListener('storage', (event) => {
  const id = store.idOfChange(event);
  if (!id || generations.running.has(id)) return;
  const changed = store.loadConversation(id);
  if (changed) conversations.set(id, changed);
  else conversations.delete(id);
  if (id === shown.id && changed) open(id, false);
  else refreshAround();
});

open(location.hash.slice(1));
connect();
if (unreadable) notify(`${unreadable} of the kept conversations cannot be read. They are left as they are.`, { lasting: true });
