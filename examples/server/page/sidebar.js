// The list of conversations, in groups by day. The reader can search titles and messages, and rename and delete conversations.
import { pathOf, titleOf } from './conversation.js';
import { el, iconButton } from './dom.js';

const DAY = 86400000;

function groupOf(time) {
  const midnight = new Date().setHours(0, 0, 0, 0);
  if (time >= midnight) return 'Today';
  if (time >= midnight - DAY) return 'Yesterday';
  if (time >= midnight - 7 * DAY) return 'The last 7 days';
  return new Date(time).toLocaleDateString(undefined, { month: 'long', year: 'numeric' });
}

export class Sidebar {
  /** actions: {rename(conversation, title), remove(conversation), open(id)}. running(conversation): whether an answer is being written. */
  constructor(list, search, actions, running) {
    Object.assign(this, { list, search, actions, running });
    search.addEventListener('input', () => this.show(this.conversations, this.current));
    search.addEventListener('keydown', (event) => {
      if (event.key === 'Enter') this.list.querySelector('a')?.click();
      if (event.key === 'ArrowDown') this.list.querySelector('a')?.focus();
    });
    list.addEventListener('keydown', (event) => this.walk(event));
  }

  show(conversations, current) {
    Object.assign(this, { conversations, current });
    if (this.renaming) return;
    const wanted = this.search.value.trim().toLowerCase();
    const found = conversations.map((conversation) => [conversation, findIn(conversation, wanted)]).filter(([, hit]) => hit)
      .sort(([a], [b]) => b.updated - a.updated);
    const focused = this.list.contains(document.activeElement) ? document.activeElement.closest('li')?.dataset.id : null;
    const groups = new Map();
    for (const entry of found) {
      const group = wanted ? 'Found' : groupOf(entry[0].updated);
      groups.set(group, [...(groups.get(group) ?? []), entry]);
    }
    this.list.replaceChildren(...[...groups].map(([name, entries]) => el('section', { 'aria-label': name },
      el('h2', {}, name), el('ul', {}, entries.map(([conversation, hit]) => this.item(conversation, hit, wanted))))));
    if (!found.length) this.list.append(el('p', { class: 'empty' }, wanted ? 'Nothing is found.' : 'No conversations yet.'));
    if (focused) this.list.querySelector(`li[data-id="${CSS.escape(focused)}"] a`)?.focus();
  }

  item(conversation, hit, wanted) {
    const title = titleOf(conversation);
    const item = el('li', { class: conversation.id === this.current && 'current' },
      el('a', { href: `#${conversation.id}`, 'aria-current': conversation.id === this.current && 'page', on: { click: (event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return;  // the browser opens another tab or window, as for any link
        event.preventDefault();
        this.actions.open(conversation.id);
      } } },
        el('span', { class: 'title' }, marked(title, wanted)),
        hit.snippet && el('span', { class: 'snippet' }, marked(hit.snippet, wanted)),
        this.running(conversation) && el('span', { class: 'pulse', role: 'img', 'aria-label': 'An answer is being written' })),
      el('span', { class: 'item-tools' },
        iconButton('edit', `Rename “${title}”`, () => this.rename(item, conversation)),
        iconButton('trash', `Delete “${title}”`, () => this.actions.remove(conversation))));
    item.dataset.id = conversation.id;
    return item;
  }

  rename(item, conversation) {
    const box = el('input', { class: 'rename', 'aria-label': 'Title of the conversation', maxlength: 200 });
    box.value = titleOf(conversation);
    this.renaming = true;
    let ended = false;
    const end = (keep) => {
      if (ended) return;
      ended = true;
      this.renaming = false;
      if (keep) this.actions.rename(conversation, box.value.trim());
      this.show(this.conversations, this.current);
      this.list.querySelector(`li[data-id="${CSS.escape(conversation.id)}"] a`)?.focus();
    };
    box.addEventListener('blur', () => end(true));
    box.addEventListener('keydown', (event) => {
      if (event.key === 'Enter') end(true);
      if (event.key === 'Escape') {
        event.stopPropagation();
        end(false);
      }
    });
    item.replaceChildren(box);
    box.focus();
    box.select();
  }

  /** Moves the focus up and down through the list. */
  walk(event) {
    if (!event.target.matches('a') || !['ArrowDown', 'ArrowUp'].includes(event.key)) return;
    event.preventDefault();
    const links = [...this.list.querySelectorAll('a')];
    const next = links[links.indexOf(event.target) + (event.key === 'ArrowDown' ? 1 : -1)];
    (next ?? (event.key === 'ArrowUp' ? this.search : null))?.focus();
  }
}

/** Returns {snippet}, the text around the place that was found; null if nothing was found. An empty search finds every conversation. */
function findIn(conversation, wanted) {
  if (!wanted || titleOf(conversation).toLowerCase().includes(wanted)) return { snippet: null };
  const shown = new Set(pathOf(conversation));
  const nodes = [...shown, ...Object.values(conversation.nodes).filter((node) => !shown.has(node))];
  for (const { content } of nodes) {
    const at = content.toLowerCase().indexOf(wanted);
    if (at >= 0) return { snippet: `${at > 24 ? '…' : ''}${content.slice(Math.max(0, at - 24), at + 60).replace(/\s+/g, ' ')}` };
  }
  return null;
}

function marked(text, wanted) {
  const at = wanted ? text.toLowerCase().indexOf(wanted) : -1;
  return at < 0 ? [text] : [text.slice(0, at), el('mark', {}, text.slice(at, at + wanted.length)), text.slice(at + wanted.length)];
}
