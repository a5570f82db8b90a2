// The messages of the shown conversation, and the reader's place in them.
import { pathOf } from './conversation.js';
import { el, icon } from './dom.js';
import { MessageView } from './message_view.js';

const NEAR = 80;  // px: a reader who scrolls to this distance from the end wants to follow the text

export class ThreadView {
  /** welcome(): makes the content of an empty conversation. */
  constructor({ scroller, list, composer }, actions, generations, welcome) {
    Object.assign(this, { scroller, list, actions, generations, welcome, top: 0 });
    this.views = new Map();
    this.following = true;
    this.dirty = new Set();
    this.jump = el('button', { type: 'button', class: 'jump', hidden: true, on: { click: () => {
      this.follow();
      // The button disappears, so moves the focus to the box. Not on a touch screen, where this would bring the keyboard up.
      if (!matchMedia('(pointer: coarse)').matches) composer.querySelector('textarea').focus();
    } } }, icon('down'), 'To the end');
    composer.prepend(this.jump);
    scroller.addEventListener('scroll', () => this.scrolled(), { passive: true });
    // Follows the end also when the list grows without an event of the page (fonts, an opened block).
    new ResizeObserver(() => this.following && this.toEnd()).observe(list);
  }

  show(conversation) {
    if (this.conversation !== conversation) {
      this.views.clear();
      this.list.replaceChildren();
      this.following = true;
    }
    this.conversation = conversation;
    this.probabilities = conversation.probabilities;
    const run = this.generations.of(conversation);
    const path = pathOf(conversation);
    const shown = new Map();
    for (const node of path) {
      const view = this.views.get(node.id) ?? new MessageView(conversation, node, this.actions);
      view.wasRunning = undefined;  // versions and actions may have changed
      view.update(run?.node === node ? run : null);
      shown.set(node.id, view);
    }
    this.views = shown;
    const elements = path.length ? [...shown.values()].map((view) => view.element) : [this.welcome()];
    // Does not move elements that stay, so that they keep selection and focus.
    for (const [i, element] of elements.entries()) {
      if (this.list.children[i] !== element) this.list.insertBefore(element, this.list.children[i] ?? null);
    }
    while (this.list.children.length > elements.length) this.list.lastChild.remove();
    if (this.following) this.toEnd();
  }

  /** Call this when a message has grown. Draws the message with the next frame, once for several calls. */
  grow(node) {
    this.dirty.add(node.id);
    if (this.frame) return;
    const draw = () => {
      this.frame = null;
      const run = this.generations.of(this.conversation);
      for (const id of this.dirty) this.views.get(id)?.update(run?.node.id === id ? run : null);
      this.dirty.clear();
      if (this.following) this.toEnd();
    };
    this.frame = document.hidden ? setTimeout(draw, 200) : requestAnimationFrame(draw);
  }

  follow() {
    this.following = true;
    this.jump.hidden = true;
    this.toEnd();
  }

  toEnd() {
    this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  /** Follows the growing text until the reader scrolls up, even a little. Follows again when the reader is near the end. */
  scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    const left = scrollHeight - scrollTop - clientHeight;
    if (left < 4) this.following = true;
    else if (scrollTop < this.top) this.following = false;
    else if (left < NEAR) this.following = true;
    this.top = scrollTop;
    this.jump.hidden = this.following;
  }

  /** Scrolls a page up (-1) or down (1), for a reader whose focus is in the message box. */
  page(step) {
    this.scroller.scrollBy({ top: step * this.scroller.clientHeight * 0.85 });
  }

  viewOf(node) {
    return this.views.get(node.id);
  }
}
