// The switch between three looks: the system's, light and dark.
import { icon } from './dom.js';
import { removeSetting, saveSetting } from './store.js';

const looks = [
  ['', 'display', 'as the system'],
  ['light', 'sun', 'light'],
  ['dark', 'moon', 'dark'],
];

export function lookSwitch(button) {
  const show = () => {
    const now = looks.find(([name]) => name === (document.documentElement.dataset.look ?? ''));
    const label = `Look: ${now[2]}`;
    button.replaceChildren(icon(now[1]));
    button.title = label;
    button.setAttribute('aria-label', `${label}. Change`);
  };
  button.addEventListener('click', () => {
    const at = looks.findIndex(([name]) => name === (document.documentElement.dataset.look ?? ''));
    const [name] = looks[(at + 1) % looks.length];
    if (name) {
      document.documentElement.dataset.look = name;
      saveSetting('look', name);
    } else {
      delete document.documentElement.dataset.look;
      removeSetting('look');
    }
    show();
  });
  show();
}
