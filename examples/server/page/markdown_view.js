// Draws Markdown that grows. Blocks that appended text can no longer change keep their elements. Only the last blocks are drawn anew, so an
// update costs as much as the last paragraph, and a selection further up stays.
import { CodeView } from './code_view.js';
import { el } from './dom.js';
import { linesOf, parseBlocks } from './markdown.js';
import { parseInline } from './markdown_inline.js';
import { drawMath } from './math.js';

// How many of the last blocks are drawn anew when text is appended: appended text can become part of the last block (a list goes on after a
// blank line), or change the kind of the last line.
const UNSETTLED = 2;

export class MarkdownView {
  constructor(attributes = {}) {
    this.element = el('div', { class: 'prose', ...attributes });
    this.settled = 0;  // how many first lines have elements that do not change any more
    this.loose = [];   // [{block, element, code}]: the blocks after the settled lines
    this.text = '';
  }

  /** Draws the whole text so far. open: more text is expected. */
  update(text, open) {
    if (!text.startsWith(this.text)) {
      this.settled = 0;
      this.loose = [];
      this.element.replaceChildren();
    }
    this.text = text;
    const lines = linesOf(text);
    const blocks = parseBlocks(lines, this.settled);
    const before = this.loose;
    this.loose = blocks.map((block, i) => this.draw(block, lines, before[i], open && i === blocks.length - 1));
    for (let i = 0; i < Math.max(before.length, this.loose.length); ++i) {
      const old = before[i]?.element, now = this.loose[i]?.element;
      if (old === now) continue;
      if (!now) old.remove();
      else if (old) old.replaceWith(now);
      else this.element.append(now);
    }
    if (blocks.length > UNSETTLED) {
      this.settled = blocks[blocks.length - UNSETTLED].from;
      this.loose = this.loose.slice(-UNSETTLED);
    }
  }

  draw(block, lines, before, open) {
    const source = lines.slice(block.from, block.to).join('\n');
    if (before && before.source === source && before.open === open && before.type === block.type) return before;
    if (block.type === 'code') {
      const code = before?.code && before.code.language === block.language ? before.code : new CodeView(block.language);
      code.update(block.lines);
      return { source, open, type: block.type, code, element: code.element };
    }
    return { source, open, type: block.type, element: drawBlock(block, open) };
  }
}

function drawBlock(block, open) {
  const inline = (text) => drawInline(parseInline(text, open));
  switch (block.type) {
    case 'heading':
      // The page's own headings end at level 2.
      return el(`h${Math.min(6, block.level + 2)}`, { class: `level-${block.level}` }, inline(block.text));
    case 'rule':
      return el('hr');
    case 'quote':
      return el('blockquote', {}, block.blocks.map((inner) => drawBlock(inner, open)));
    case 'list':
      return el(block.ordered ? 'ol' : 'ul',
        { start: block.start !== 1 && block.start, class: block.items.some((item) => item.task !== null) && 'tasks' },
        block.items.map((item) => drawItem(item, block.loose, open)));
    case 'table': {
      const head = block.head.map((cell, i) => el('th', { scope: 'col', class: block.align[i] }, inline(cell)));
      const rows = block.rows.map((row) => el('tr', {}, row.map((cell, i) => el('td', { class: block.align[i] }, inline(cell)))));
      return el('div', { class: 'table-scroll', tabindex: 0, role: 'region', 'aria-label': 'Table' },
        el('table', {}, el('thead', {}, el('tr', {}, head)), el('tbody', {}, rows)));
    }
    case 'code': {
      const code = new CodeView(block.language);
      code.update(block.lines);
      return code.element;
    }
    case 'math':
      return el('p', { class: 'math' }, drawMath(block.text, true) ?? block.source);
    default:
      return el('p', {}, inline(block.text));
  }
}

function drawItem(item, loose, open) {
  const box = item.task !== null
    && el('span', { class: item.task ? 'task done' : 'task', role: 'img', 'aria-label': item.task ? 'done' : 'to do' });
  const content = item.blocks.map((block) =>
    block.type === 'paragraph' && !loose ? drawInline(parseInline(block.text, open)) : drawBlock(block, open));
  return el('li', {}, box, content.flat());
}

function drawInline(nodes) {
  return nodes.map((node) => {
    switch (node.type) {
      case 'text': return node.text;
      case 'break': return el('br');
      case 'code': return el('code', {}, node.text);
      case 'math': return drawMath(node.text, false) ?? el('span', { class: 'math' }, node.source);
      case 'link':
        return el('a', { href: node.href, target: '_blank', rel: 'noopener noreferrer nofollow' }, drawInline(node.children));
      default: return el(node.type, {}, drawInline(node.children));
    }
  });
}
