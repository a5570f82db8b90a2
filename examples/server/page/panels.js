// The panels with the list of conversations and the settings. They stand beside the messages; on a narrow page they cover the messages.
import { loadSetting, saveSetting } from './store.js';

const NARROW = '(max-width: 820px)';

export class Panels {
  /** panels: {name: {panel, buttons, focus}}. focus() returns the element that gets the focus when the panel opens over the page. */
  constructor(panels, middle, shade) {
    Object.assign(this, { panels, middle, shade });
    this.narrow = matchMedia(NARROW);
    for (const name of Object.keys(panels)) {
      for (const button of panels[name].buttons) button.addEventListener('click', () => this.toggle(name));
    }
    shade.addEventListener('click', () => this.closeOver());
    this.narrow.addEventListener('change', () => this.settle());
    this.settle();
  }

  /** Opens the panels that were open last. Exception: opens none on a narrow page. */
  settle() {
    for (const name of Object.keys(this.panels)) {
      this.set(name, !this.narrow.matches && (loadSetting(`panel-${name}`) ?? name === 'sidebar'));
    }
  }

  isOpen(name) {
    return !this.panels[name].panel.hidden;
  }

  set(name, open) {
    const { panel, buttons } = this.panels[name];
    panel.hidden = !open;
    for (const button of buttons) button.setAttribute('aria-expanded', String(open));
    const over = this.narrow.matches && Object.keys(this.panels).some((other) => this.isOpen(other));
    this.middle.inert = over;
    this.shade.hidden = !over;
  }

  open(name) {
    if (this.narrow.matches) for (const other of Object.keys(this.panels)) if (other !== name) this.set(other, false);
    this.set(name, true);
    if (!this.narrow.matches) saveSetting(`panel-${name}`, true);
    this.panels[name].focus();
  }

  close(name) {
    const within = this.panels[name].panel.contains(document.activeElement);
    this.set(name, false);
    if (!this.narrow.matches) saveSetting(`panel-${name}`, false);
    if (within) this.panels[name].buttons.find((button) => button.checkVisibility())?.focus();
  }

  toggle(name) {
    if (this.isOpen(name)) this.close(name);
    else this.open(name);
  }

  /** Closes a panel that covers the page; returns false if there is none. */
  closeOver() {
    if (!this.narrow.matches) return false;
    const open = Object.keys(this.panels).filter((name) => this.isOpen(name));
    for (const name of open) this.close(name);
    return open.length > 0;
  }
}
