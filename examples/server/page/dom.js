// Makes elements. Text becomes text nodes, never markup: no file in this folder parses HTML, and the server's
// content security policy (Trusted Types) forbids it.

const SVG = 'http://www.w3.org/2000/svg';

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === 'on') {
      for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    } else {
      node.setAttribute(name, value === true ? '' : String(value));
    }
  }
  for (const child of children.flat()) if (child !== undefined && child !== null && child !== false) node.append(child);
  return node;
}

/** Makes an element: el('p', {class: 'note', on: {click: f}}, 'text', otherElement). Leaves out attributes that are false or absent. */
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

// Icons on a 24 x 24 grid. Lines have a width of 1.75. Filled shapes are marked as filled.
const icons = {
  plus: 'M12 5v14M5 12h14',
  search: 'M11 4a7 7 0 1 1 0 14a7 7 0 0 1 0-14M20 20l-4-4',
  send: 'M12 19V5M6 11l6-6l6 6',
  stop: 'M8 8h8v8h-8z',
  copy: 'M9 9h10v11H9zM5 15V4h10',
  check: 'M5 12.5l4.5 4.5L19 7.5',
  edit: 'M4 20l1-4L16 5l3 3L8 19zM14 7l3 3',
  again: 'M19 12a7 7 0 1 1-2.2-5.1M19 4v4h-4',
  branch: 'M7 5v14M7 15c0-5 10-3 10-8M4.5 5a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0-5 0M14.5 5a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0-5 0',
  left: 'M14 6l-6 6l6 6',
  right: 'M10 6l6 6l-6 6',
  down: 'M12 5v14M6 13l6 6l6-6',
  trash: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13M10.5 11v5M13.5 11v5',
  close: 'M6 6l12 12M18 6L6 18',
  menu: 'M4 7h16M4 12h16M4 17h16',
  sliders: 'M4 8h9M19 8h1M4 16h1M11 16h9M13 8a3 3 0 1 0 6 0a3 3 0 1 0-6 0M5 16a3 3 0 1 0 6 0a3 3 0 1 0-6 0',
  sun: 'M12 8a4 4 0 1 1 0 8a4 4 0 0 1 0-8M12 2.5v2M12 19.5v2M2.5 12h2M19.5 12h2M5.3 5.3l1.4 1.4M17.3 17.3l1.4 1.4'
    + 'M5.3 18.7l1.4-1.4M17.3 6.7l1.4-1.4',
  moon: 'M19.5 14.5A8 8 0 0 1 9.5 4.5a8 8 0 1 0 10 10z',
  display: 'M3.5 5h17v11h-17zM9 20h6M12 16v4',
  key: 'M14 4a6 6 0 1 1-3 11l-1.500 1.500H7.500V19H5v2H2.500v-3.500L8.600 11.400A6 6 0 0 1 14 4M15.500 8.500h.01',
  help: 'M12 3a9 9 0 1 1 0 18a9 9 0 0 1 0-18M9.300 9.500a2.700 2.700 0 1 1 3.800 2.500c-.800.400-1.100.900-1.100 1.800M12 17h.01',
  download: 'M12 4v11M7 10.500l5 5l5-5M5 20h14',
  upload: 'M12 16V5M7 9.500l5-5l5 5M5 20h14',
  pulse: 'M3 12h4l3-7l4 14l3-7h4',
  alert: 'M12 4l9 16H3zM12 10v4M12 17h.01',
  tool: 'M14.500 6.500a4 4 0 0 1 5-1.500l-2.500 2.500l1.500 1.500L21 6.500a4 4 0 0 1-5.500 5L8 19a2.100 2.100 0 0 1-3-3l7.500-7.500',
  attach: 'M19 11l-7.500 7.500a4.500 4.500 0 0 1-6.400-6.400L13 4.200a3 3 0 0 1 4.300 4.300l-7.700 7.700a1.500 1.500 0 0 1-2.200-2.200L14.500 7',
  file: 'M6 3h8l4 4v14H6zM14 3v4h4M9 12h6M9 16h6',
  onward: 'M5 12h13M13 7l5 5l-5 5',
  chat: 'M4 5h16v11H10l-4 4v-4H4z',
};

export function icon(name) {
  return svg('svg', { class: 'icon', viewBox: '0 0 24 24', 'aria-hidden': 'true', focusable: 'false' },
    svg('path', { d: icons[name] }));
}

/** Makes a button that shows only an icon. Screen readers read the label, which is also the tooltip. */
export function iconButton(name, label, action, attributes = {}) {
  const own = { type: 'button', class: 'icon-button', 'aria-label': label, title: label, on: { click: action } };
  return el('button', { ...own, ...attributes }, icon(name));
}

/** Puts text on the clipboard, and marks the button for a moment. */
export async function copyFrom(button, text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without a secure context (plain HTTP on another host) there is no clipboard object, but the old command works.
    const box = el('textarea', { class: 'visually-hidden', 'aria-hidden': 'true' });
    box.value = text;
    document.body.append(box);
    box.select();
    const copied = document.execCommand('copy');
    box.remove();
    button.focus();
    if (!copied) return false;
  }
  const drawn = button.querySelector('.icon');
  const before = button.getAttribute('aria-label');
  drawn?.replaceWith(icon('check'));
  button.setAttribute('aria-label', 'Copied');
  setTimeout(() => {
    button.querySelector('.icon')?.replaceWith(icon('copy'));
    if (before) button.setAttribute('aria-label', before);
    else button.removeAttribute('aria-label');
  }, 1600);
  return true;
}

/** The mark of the program: a mosaic of tiles. */
export function mark(attributes = {}) {
  // x, y, width, height, colour
  const tiles = [
    [1, 1, 9, 9, 1], [12, 1, 11, 5, 3], [12, 8, 5, 9, 2], [19, 8, 4, 4, 4],
    [1, 12, 4, 11, 4], [7, 12, 3, 5, 3], [7, 19, 10, 4, 1], [19, 14, 4, 9, 2],
  ];
  return svg('svg', { class: 'mark', viewBox: '0 0 24 24', 'aria-hidden': 'true', focusable: 'false', ...attributes },
    tiles.map(([x, y, width, height, tone]) => svg('rect', { x, y, width, height, rx: 1, class: `tone-${tone}` })));
}
