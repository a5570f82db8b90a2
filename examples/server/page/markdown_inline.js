// Parses the inside of a line of Markdown: emphasis, code, links. parseInline('a **b**') returns
// [{type: 'text', text: 'a '}, {type: 'strong', children: [...]}]. The time grows linearly with the length of the text, whatever it
// contains: brackets are paired in one pass, and emphasis uses CommonMark's stack of delimiters, with a limit.

const DEEPEST = 16;  // the most open delimiters; older ones stay text, which limits time and depth
const PUNCTUATION = /[\p{P}\p{S}]/u;
const ESCAPED = /[!-/:-@[-`{-~]/;
const URL_HERE = /https?:\/\/[^\s<>"`\\]+/y;
const ANGLE = /<((?:https?:\/\/|mailto:)[^\s<>]*)>/y;
const TARGET = /\(\s*(?:<([^<>\n]*)>|((?:[^\s()\\]|\\.|\([^\s()]*\))*))(?:\s+(?:"[^"]*"|'[^']*'))?\s*\)/y;
const MATH = /\\\((.{1,500}?)\\\)|\$\$([^$\n]+)\$\$|\$(?! )((?:[^$\n\\]|\\.){1,500}?)(?<! )\$(?!\d)/y;
const IS_FORMULA = /[\\^_=]|^[a-zA-Z]$/;  // matches a formula within single dollars; other texts are amounts of money

/** Returns a link's address if it is safe to follow, else null (for example for javascript: and data:). */
export function safeAddress(text) {
  try {
    const url = new URL(text);
    return ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

function matchAt(pattern, text, at) {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

/** Returns a Map from the position of each '[' to the position of its ']'. */
function pairBrackets(text) {
  const pairs = new Map(), open = [];
  for (let i = 0; i < text.length; ++i) {
    if (text[i] === '\\') ++i;
    else if (text[i] === '[') open.push(i);
    else if (text[i] === ']' && open.length) pairs.set(open.pop(), i);
  }
  return pairs;
}

/** Returns the nodes of a text. open: the text is still being written, so emphasis and code without an end reach to the text's end. */
export function parseInline(text, open = false, inLink = false, depth = 0) {
  const nodes = [];       // text, finished nodes, and runs of delimiters, which emphasis() turns into nodes or text
  const brackets = pairBrackets(text);
  const noCloser = new Set();  // lengths of backtick runs that no later run closes
  let plain = '';
  const flush = () => {
    if (plain) nodes.push({ type: 'text', text: plain });
    plain = '';
  };
  const add = (node) => {
    flush();
    nodes.push(node);
  };

  for (let i = 0; i < text.length;) {
    const c = text[i];
    let match;
    if (c === '\\' && (match = matchAt(MATH, text, i))) {
      add({ type: 'math', text: match[1], source: match[0] });
      i += match[0].length;
    } else if (c === '\\' && text[i + 1] === '\n') {
      add({ type: 'break' });
      i += 2;
    } else if (c === '\\' && ESCAPED.test(text[i + 1] ?? '')) {
      plain += text[i + 1];
      i += 2;
    } else if (c === '$' && (match = matchAt(MATH, text, i)) && (match[2] || IS_FORMULA.test(match[3]))) {
      add({ type: 'math', text: match[2] ?? match[3], source: match[0] });
      i += match[0].length;
    } else if (c === '\n') {
      plain = plain.trimEnd();
      add({ type: 'break' });
      ++i;
    } else if (c === '`') {
      const run = /^`+/.exec(text.slice(i, i + 64))[0];
      const end = noCloser.has(run.length) ? -1 : closeOf(text, i + run.length, run.length);
      if (end >= 0 || (open && i + run.length < text.length && run.length < 3)) {
        const code = text.slice(i + run.length, end < 0 ? undefined : end).replaceAll('\n', ' ');
        add({ type: 'code', text: /^ .*\S.* $/.test(code) ? code.slice(1, -1) : code });
        i = end < 0 ? text.length : end + run.length;
      } else {
        noCloser.add(run.length);
        plain += run;
        i += run.length;
      }
    } else if ((c === '[' || (c === '!' && text[i + 1] === '[')) && !inLink && depth < 8 && (match = link(text, i, brackets))) {
      // Shows an image as a link to the image, because the page loads nothing from other servers.
      const { href, label } = match;
      add({ type: 'link', href, children: label ? parseInline(label, false, true, depth + 1) : [{ type: 'text', text: href }] });
      i = match.end;
    } else if (c === '<' && !inLink && (match = matchAt(ANGLE, text, i)) && safeAddress(match[1])) {
      add({ type: 'link', href: safeAddress(match[1]), children: [{ type: 'text', text: match[1] }] });
      i += match[0].length;
    } else if (c === 'h' && !inLink && !/\w/.test(text[i - 1] ?? '') && (match = matchAt(URL_HERE, text, i))) {
      const address = trimAddress(match[0]);
      const href = safeAddress(address);
      if (href) add({ type: 'link', href, children: [{ type: 'text', text: address }] });
      else plain += address;
      i += address.length;
    } else if (c === '*' || c === '_' || c === '~') {
      let end = i + 1;
      while (text[end] === c) ++end;
      flush();
      nodes.push(delimiter(text, i, end));
      i = end;
    } else {
      plain += c;
      ++i;
    }
  }
  flush();
  return emphasis(nodes, open);
}

function closeOf(text, from, length) {
  for (let i = text.indexOf('`', from); i >= 0; i = text.indexOf('`', i)) {
    let end = i;
    while (text[end] === '`') ++end;
    if (end - i === length) return i;
    i = end;
  }
  return -1;
}

function link(text, at, brackets) {
  const start = text[at] === '!' ? at + 1 : at;
  const close = brackets.get(start);
  if (close === undefined || text[close + 1] !== '(') return null;
  const target = matchAt(TARGET, text, close + 1);
  const href = target && safeAddress((target[1] ?? target[2]).replace(/\\([!-/:-@[-`{-~])/g, '$1'));
  return href ? { href, label: text.slice(start + 1, close), end: close + 1 + target[0].length } : null;
}

/** Returns the address without the punctuation that ends the sentence, and without an unmatched closing parenthesis. */
function trimAddress(address) {
  let end = address.replace(/[.,;:!?'*_~]+$/, '');
  const more = (text) => text.match(/\)/g).length > (text.match(/\(/g) ?? []).length;
  while (end.length < 2000 && end.endsWith(')') && more(end)) end = end.slice(0, -1).replace(/[.,;:!?]+$/, '');
  return end;
}

function delimiter(text, from, to) {
  const before = from === 0 ? ' ' : text[from - 1], after = to === text.length ? ' ' : text[to];
  const leftFlanking = !/\s/.test(after) && (!PUNCTUATION.test(after) || /\s/.test(before) || PUNCTUATION.test(before));
  const rightFlanking = !/\s/.test(before) && (!PUNCTUATION.test(before) || /\s/.test(after) || PUNCTUATION.test(after));
  const c = text[from];
  return {
    type: 'run', char: c, count: to - from, length: to - from,
    opens: leftFlanking && (c !== '_' || !rightFlanking || PUNCTUATION.test(before)),
    closes: rightFlanking && (c !== '_' || !leftFlanking || PUNCTUATION.test(after)),
  };
}

const plainRun = (run) => ({ type: 'text', text: run.char.repeat(run.count) });

/** Turns pairs of delimiter runs into em, strong and del around the nodes between them (CommonMark 6.2). */
function emphasis(nodes, open) {
  const out = [];         // finished nodes and runs that may still open
  const openers = [];     // indices in `out` of runs that may still open
  for (const node of nodes) {
    if (node.type !== 'run') {
      out.push(node);
      continue;
    }
    if (node.closes) closeWith(node, out, openers);
    if (node.count && node.opens) {
      openers.push(out.length);
      if (openers.length > DEEPEST) openers.shift();
    }
    if (node.count) out.push(node);
  }
  if (open) {
    // While the text is still being written, an open delimiter that has text after it reaches to the end.
    for (const at of openers.reverse()) {
      const run = out[at];
      if (at + 1 >= out.length || run.count > 2 || (run.char === '~' && run.count !== 2)) continue;
      const children = out.splice(at + 1).map(settle);
      out[at] = { type: nameOf(run.char, run.count), children };
    }
  }
  return out.map(settle);
}

const settle = (node) => (node.type === 'run' ? plainRun(node) : node);
const nameOf = (char, count) => (char === '~' ? 'del' : count === 2 ? 'strong' : 'em');

function closeWith(closer, out, openers) {
  for (let o = openers.length - 1; o >= 0 && closer.count;) {
    const opener = out[openers[o]];
    const odd = (opener.closes || closer.opens) && (opener.length + closer.length) % 3 === 0
      && (opener.length % 3 || closer.length % 3);
    if (opener.char !== closer.char || (odd && closer.char !== '~') || (closer.char === '~' && opener.count !== closer.count)) {
      --o;
      continue;
    }
    const used = closer.char === '~' ? closer.count : Math.min(2, opener.count, closer.count);
    const children = out.splice(openers[o] + 1).map(settle);
    out.push({ type: nameOf(closer.char, used), children });
    opener.count -= used;
    closer.count -= used;
    if (!opener.count) out.splice(openers[o], 1);
    openers.length = opener.count ? o + 1 : o;
    o = openers.length - 1;
  }
}
