// The keyboard of the page; the help dialog in index.html lists the same keys.

const typing = (target) => target.closest?.('input, textarea, select, [contenteditable]');

/**
 * Calls a function of `actions` when its keys are pressed. actions: {stop, search, help, create, settings, attach, goOn, models, focusBox,
 * closeOver}. stop() and closeOver() return whether they did something.
 */
export function listen(actions) {
  document.addEventListener('keydown', (event) => {
    if (event.isComposing || event.defaultPrevented || document.querySelector('dialog[open]')) return;
    const control = event.ctrlKey || event.metaKey;
    let action = null;
    if (event.key === 'Escape') {
      if (!actions.closeOver() && !actions.stop() && typing(event.target)) actions.focusBox();
      return;
    }
    if (control && !event.altKey && !event.shiftKey && event.key.toLowerCase() === 'k') action = actions.search;
    else if (control && event.key === '/') action = actions.help;
    else if (event.altKey && !control && event.code === 'KeyN') action = actions.create;
    else if (event.altKey && !control && event.code === 'KeyS') action = actions.settings;
    else if (event.altKey && !control && event.code === 'KeyA') action = actions.attach;
    else if (event.altKey && !control && event.code === 'KeyG') action = actions.goOn;
    else if (event.altKey && !control && event.code === 'KeyM') action = actions.models;
    else if (event.key === '?' && !typing(event.target)) action = actions.help;
    else if (event.key === '/' && !control && !typing(event.target)) action = actions.focusBox;
    if (!action) return;
    event.preventDefault();
    action();
  });
}
