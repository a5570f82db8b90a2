// A block of code with its language, a copy button and colours. A complete line is drawn only once.
import { copyFrom, el, iconButton } from './dom.js';
import { highlightLine, languageOf } from './highlight.js';

export class CodeView {
  constructor(language) {
    this.language = language;
    this.rules = languageOf(language);
    this.lines = [];
    this.drawn = [];    // an element for each line
    this.states = [''];  // the highlighter's state before each line
    this.code = el('code');
    const copy = iconButton('copy', 'Copy code', () => copyFrom(copy, this.lines.join('\n')));
    this.element = el('figure', { class: 'code' },
      el('figcaption', {}, el('span', {}, language || 'text'), copy),
      el('pre', { tabindex: 0, 'aria-label': language ? `${language} code` : 'code' }, this.code));
  }

  update(lines) {
    let same = 0;
    while (same < lines.length && same < this.lines.length && lines[same] === this.lines[same]) ++same;
    for (const line of this.drawn.splice(same)) line.remove();
    this.states.length = same + 1;
    for (let i = same; i < lines.length; ++i) {
      const { pieces, state } = highlightLine(this.rules, lines[i], this.states[i]);
      const line = el('span', {}, pieces.map(([kind, text]) => (kind ? el('span', { class: kind }, text) : text)), '\n');
      this.drawn.push(line);
      this.states.push(state);
      this.code.append(line);
    }
    this.lines = [...lines];
  }
}
