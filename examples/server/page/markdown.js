// Parses Markdown as models write it (CommonMark's blocks and GitHub's tables) into plain objects; markdown_view.js draws them. HTML is not
// supported: a tag is text.
//
// A block is {type, from, to, ...}: lines [from, to) of the text. When text is appended, only the last blocks can change, so drawing a
// stream is cheap.

const FENCE = /^( {0,3})(`{3,}|~{3,})[ \t]*([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$/;
const RULE = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])(?:( +)(.*)|$)/;
const TABLE_RULE = /^ *\|? *:?-+:? *(?:\| *:?-+:? *)*\|? *$/;
const MATH = [['$$', '$$'], ['\\[', '\\]']];
const DEEPEST = 12;  // the most nested quotes and lists; deeper ones are shown as text

const blank = (line) => !/\S/.test(line);
const indentOf = (line) => line.length - line.trimStart().length;

/** Returns the blocks of a text. lines: without line ends, with tabs replaced by spaces. */
export function parseBlocks(lines, first = 0, depth = 0) {
  const blocks = [];
  let at = first;
  while (at < lines.length) {
    if (blank(lines[at])) {
      ++at;
      continue;
    }
    const block = fence(lines, at) ?? heading(lines, at) ?? rule(lines, at) ?? (depth < DEEPEST ? quote(lines, at, depth) : null)
      ?? (depth < DEEPEST ? list(lines, at, depth) : null) ?? table(lines, at) ?? math(lines, at) ?? paragraph(lines, at);
    block.from = at;
    at = block.to;
    blocks.push(block);
  }
  return blocks;
}

export function linesOf(text) {
  return text.replace(/\r\n?/g, '\n').split('\n').map((line) => line.replace(/^[ \t]+/, (space) => space.replaceAll('\t', '    ')));
}

function fence(lines, at) {
  const open = FENCE.exec(lines[at]);
  if (!open) return null;
  const [, indent, mark, info] = open;
  const body = [];
  let to = at + 1;
  for (; to < lines.length; ++to) {
    const line = lines[to];
    const close = /^ {0,3}(`{3,}|~{3,})[ \t]*$/.exec(line);
    if (close && close[1][0] === mark[0] && close[1].length >= mark.length) {
      return { type: 'code', language: info.trim().split(/\s+/)[0], lines: body, closed: true, to: to + 1 };
    }
    body.push(line.slice(Math.min(indent.length, indentOf(line))));
  }
  return { type: 'code', language: info.trim().split(/\s+/)[0], lines: body, closed: false, to };
}

function heading(lines, at) {
  const match = HEADING.exec(lines[at]);
  return match && { type: 'heading', level: match[1].length, text: match[2] ?? '', to: at + 1 };
}

function rule(lines, at) {
  return RULE.test(lines[at]) ? { type: 'rule', to: at + 1 } : null;
}

function quote(lines, at, depth) {
  let to = at;
  while (to < lines.length && QUOTE.test(lines[to])) ++to;
  if (to === at) return null;
  return { type: 'quote', blocks: parseBlocks(lines.slice(at, to).map((line) => line.replace(QUOTE, '')), 0, depth + 1), to };
}

const kindOf = (marker) => (marker.length === 1 ? marker : marker.at(-1));

function list(lines, at, depth) {
  const head = ITEM.exec(lines[at]);
  if (!head || head[1].length > 3) return null;
  const kind = kindOf(head[2]);
  const ordered = head[2].length > 1;
  const items = [];
  let loose = false, to = at;
  while (to < lines.length) {
    const start = ITEM.exec(lines[to]);
    if (!start || start[1].length > 3 || kindOf(start[2]) !== kind || RULE.test(lines[to])) break;
    const item = itemLines(lines, to, start);
    const blocks = parseBlocks(item.lines, 0, depth + 1);
    const task = blocks[0]?.type === 'paragraph' && /^\[([ xX])\]\s+/.exec(blocks[0].text);
    if (task) blocks[0].text = blocks[0].text.slice(task[0].length);
    items.push({ blocks, task: task ? task[1] !== ' ' : null });
    // A blank line between two blocks of an item, or between items, makes the list loose.
    for (let b = 1; b < blocks.length; ++b) {
      if (blocks[b].from > blocks[b - 1].to && blocks[b].type !== 'list') loose = true;
    }
    to = item.to;
    let next = to;
    while (next < lines.length && blank(lines[next])) ++next;
    if (next === lines.length) break;
    if (next === to) continue;
    const after = ITEM.exec(lines[next]);
    if (!after || after[1].length > 3 || kindOf(after[2]) !== kind || RULE.test(lines[next])) break;
    loose = true;
    to = next;
  }
  return { type: 'list', ordered, start: ordered ? Number.parseInt(head[2], 10) : 1, loose, items, to };
}

/** Returns the lines of one item without their indentation, and where the item ends (before blank lines at its end). */
function itemLines(lines, at, [, indent, marker, space, text]) {
  const gap = space === undefined || space.length > 4 ? 1 : space.length;
  const width = indent.length + marker.length + gap;
  const body = [space !== undefined && space.length > 4 ? space.slice(1) + text : text ?? ''];
  let end = at + 1;
  for (let i = at + 1; i < lines.length; ++i) {
    const line = lines[i];
    if (blank(line)) {
      body.push('');
      continue;
    }
    const inside = indentOf(line);
    // Models indent blocks under "1." by two spaces as often as by three.
    const nested = inside >= Math.min(width, indent.length + 2) && (inside >= width || ITEM.test(line));
    const lazy = !blank(lines[i - 1]) && !startsBlock(lines, i, true);
    if (!nested && !lazy) break;
    body.push(line.slice(Math.min(inside, width)));
    end = i + 1;
  }
  return { lines: body.slice(0, end - at), to: end };
}

function cells(line) {
  const inner = line.trim().replace(/^\|/, '').replace(/(^|[^\\])\|$/, '$1');
  const found = [];
  let cell = '', ticks = false;
  for (let i = 0; i < inner.length; ++i) {
    if (inner[i] === '\\' && inner[i + 1] === '|') {
      cell += '|';
      ++i;
    } else if (inner[i] === '|' && !ticks) {
      found.push(cell.trim());
      cell = '';
    } else {
      if (inner[i] === '`') ticks = !ticks;
      cell += inner[i];
    }
  }
  return [...found, cell.trim()];
}

function isTable(lines, at) {
  return at + 1 < lines.length && lines[at].includes('|') && TABLE_RULE.test(lines[at + 1]) && lines[at + 1].includes('-')
    && cells(lines[at]).length === cells(lines[at + 1]).length;
}

function table(lines, at) {
  if (!isTable(lines, at)) return null;
  const align = cells(lines[at + 1]).map((cell) =>
    cell.endsWith(':') ? (cell.startsWith(':') ? 'center' : 'end') : 'start');
  const rows = [];
  let to = at + 2;
  while (to < lines.length && !blank(lines[to]) && (lines[to].includes('|') || !startsBlock(lines, to))) {
    const row = cells(lines[to]).slice(0, align.length);
    while (row.length < align.length) row.push('');
    rows.push(row);
    ++to;
  }
  return { type: 'table', align, head: cells(lines[at]), rows, to };
}

function math(lines, at) {
  for (const [open, close] of MATH) {
    const line = lines[at].trim();
    if (!line.startsWith(open)) continue;
    for (let to = at; to < Math.min(lines.length, at + 60) && !(to > at && blank(lines[to])); ++to) {
      const text = to === at ? line.slice(open.length) : lines[to];
      if (!text.trimEnd().endsWith(close)) continue;
      const source = lines.slice(at, to + 1).join('\n').trim();
      return { type: 'math', text: source.slice(open.length, -close.length).trim(), source, to: to + 1 };
    }
  }
  return null;
}

/** Returns whether a line ends the paragraph before it. lazy: the paragraph is in a list item, so the marker of any list ends it. */
function startsBlock(lines, at, lazy = false) {
  const line = lines[at];
  const item = ITEM.exec(line);
  return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || isTable(lines, at)
    || MATH.some(([open]) => line.trimStart().startsWith(open))
    || (item && (lazy || (item[4] && (item[2].length === 1 || /^1[.)]$/.test(item[2])))));
}

function paragraph(lines, at) {
  let to = at + 1;
  while (to < lines.length && !blank(lines[to]) && !startsBlock(lines, to)) ++to;
  return { type: 'paragraph', text: lines.slice(at, to).map((line) => line.trimStart()).join('\n').trimEnd(), to };
}
