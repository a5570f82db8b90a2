// Turns the part of LaTeX that models write into MathML, which browsers draw. An unknown command is shown by its name;
// a formula that cannot be parsed is shown as it was written.

const MATHML = 'http://www.w3.org/1998/Math/MathML';
const DEEPEST = 24;

function node(tag, attributes, ...children) {
  const made = document.createElementNS(MATHML, tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined) made.setAttribute(name, value);
  for (const child of children) made.append(child);
  return made;
}

const table = (text) => Object.fromEntries(text.trim().split(/\s+/).map((pair) => [pair.slice(0, -1), pair.slice(-1)]));

// Pairs of a command's name and its sign, without a space between the two.
const letters = table(`alphaα betaβ gammaγ deltaδ epsilonϵ varepsilonε zetaζ etaη thetaθ varthetaϑ iotaι kappaκ lambdaλ muμ nuν xiξ piπ
  rhoρ sigmaσ tauτ upsilonυ phiϕ varphiφ chiχ psiψ omegaω GammaΓ DeltaΔ ThetaΘ LambdaΛ XiΞ PiΠ SigmaΣ UpsilonΥ PhiΦ
  PsiΨ OmegaΩ infty∞ partial∂ nabla∇ emptyset∅ varnothing∅ ellℓ hbarℏ Reℜ Imℑ alephℵ degree° dots… ldots… cdots⋯
  vdots⋮ ddots⋱ prime′ angle∠ triangle△ top⊤ bot⊥`);
const operators = table(`cdot⋅ times× div÷ pm± mp∓ ast∗ star⋆ circ∘ bullet∙ oplus⊕ otimes⊗ odot⊙ le≤ leq≤ ge≥ geq≥ ne≠ neq≠ ll≪ gg≫ approx≈
  equiv≡ sim∼ simeq≃ cong≅ propto∝ in∈ notin∉ ni∋ subset⊂ subseteq⊆ supset⊃ supseteq⊇ cup∪ cap∩ setminus∖ land∧ wedge∧
  lor∨ vee∨ neg¬ lnot¬ forall∀ exists∃ to→ rightarrow→ leftarrow← gets← leftrightarrow↔ Rightarrow⇒ implies⟹
  Leftarrow⇐ Leftrightarrow⇔ iff⟺ mapsto↦ uparrow↑ downarrow↓ mid∣ parallel∥ perp⊥ therefore∴ because∵ langle⟨ rangle⟩
  lfloor⌊ rfloor⌋ lceil⌈ rceil⌉ lvert| rvert| vert| Vert‖ lVert‖ rVert‖ lbrace{ rbrace} backslash\\ colon:`);
const large = table('sum∑ prod∏ coprod∐ int∫ iint∬ iiint∭ oint∮ bigcup⋃ bigcap⋂ bigoplus⨁ bigotimes⨂');
const accents = table('hat^ widehat^ bar¯ overline¯ tilde~ widetilde~ vec→ dot˙ ddot¨ overbrace⏞ checkˇ');
const functions = new Set(`sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log ln lg exp lim max min sup inf arg argmax
  argmin det dim ker gcd deg Pr mod`.split(/\s+/));
const below = new Set('lim max min sup inf argmax argmin det gcd Pr'.split(' '));
const spaces = { ',': 0.17, ':': 0.22, ';': 0.28, '!': -0.17, ' ': 0.3, quad: 1, qquad: 2, enspace: 0.5 };
const fonts = {
  mathbf: 'bold', boldsymbol: 'bold', bm: 'bold', mathrm: 'normal', mathit: 'italic', operatorname: 'normal', mathsf: 'normal',
  mathtt: 'normal',
};
const doubleStruck = { R: 'ℝ', N: 'ℕ', Z: 'ℤ', Q: 'ℚ', C: 'ℂ', P: 'ℙ', E: '𝔼', H: 'ℍ' };
const fences = {
  matrix: ['', ''], pmatrix: ['(', ')'], bmatrix: ['[', ']'], Bmatrix: ['{', '}'], vmatrix: ['|', '|'], cases: ['{', ''],
  aligned: ['', ''], align: ['', ''],
  'align*': ['', ''], array: ['', ''], gathered: ['', ''], split: ['', ''], equation: ['', ''], 'equation*': ['', ''] };

const ignored = ['displaystyle', 'textstyle', 'limits', 'nolimits', 'nonumber', '\\', 'hline'];

/** Puts `inner` between two fences that are as high as its contents. '' means no fence. */
function fencedBy(open, inner, close) {
  const fence = (sign) => (sign ? [node('mo', { fence: 'true', stretchy: 'true' }, sign)] : []);
  return node('mrow', {}, ...fence(open), inner, ...fence(close));
}

class Reader {
  constructor(source, display) {
    this.tokens = source.match(/\\(?:[a-zA-Z]+\*?|[^])|[0-9]+(?:[.,][0-9]+)*|\s+|[^]/gu) ?? [];
    this.at = 0;
    this.display = display;
    this.depth = 0;
  }

  peek() {
    while (this.at < this.tokens.length && /^\s/.test(this.tokens[this.at])) ++this.at;
    return this.tokens[this.at];
  }

  next() {
    const token = this.peek();
    ++this.at;
    return token;
  }

  /** Reads up to one of the tokens `ends`, but not the token itself; without such a token to the end. */
  row(...ends) {
    if (++this.depth > DEEPEST) throw new Error('too deep');
    const parts = [];
    for (let token; (token = this.peek()) !== undefined && !ends.includes(token);) {
      const part = this.scripted();
      if (part) parts.push(part);
    }
    --this.depth;
    return parts.length === 1 ? parts[0] : node('mrow', {}, ...parts);
  }

  /** Reads one part with its superscript and subscript. */
  scripted() {
    const name = this.peek();
    let base = this.part();
    if (!base) return null;
    const limits = (this.display && name.slice(1) in large && !name.includes('int')) || below.has(name.slice(1));
    let sub = null, sup = null;
    for (let token; ['_', '^', "'", '\\limits', '\\nolimits'].includes(token = this.peek());) {
      this.next();
      if (token === '_' && !sub) sub = this.argument();
      else if (token === '^' && !sup) sup = this.argument();
      else if (token === "'") sup = node('mrow', {}, ...(sup ? [sup] : []), node('mo', {}, '′'));
      else if (!token.startsWith('\\')) throw new Error('two of a kind');
    }
    if (sub && sup) base = node(limits ? 'munderover' : 'msubsup', {}, base, sub, sup);
    else if (sub) base = node(limits ? 'munder' : 'msub', {}, base, sub);
    else if (sup) base = node(limits ? 'mover' : 'msup', {}, base, sup);
    return base;
  }

  /** Reads {...} or one part. */
  argument() {
    if (this.peek() === undefined) throw new Error('an argument is missing');
    if (this.peek() !== '{') return this.part() ?? node('mrow', {});
    this.next();
    const row = this.row('}');
    if (this.next() !== '}') throw new Error('not closed');
    return row;
  }

  /** Reads the text within {...}. */
  raw() {
    if (this.next() !== '{') throw new Error('no braces');
    let text = '', open = 1;
    while (this.at < this.tokens.length) {
      const token = this.tokens[this.at++];
      if (token === '{') ++open;
      if (token === '}' && --open === 0) return text;
      text += token;
    }
    throw new Error('not closed');
  }

  part() {
    const token = this.next();
    if (token === '{') {
      --this.at;
      return this.argument();
    }
    if (token === '}' || token === '^' || token === '_' || token === '&') throw new Error(`an unexpected ${token}`);
    if (token.startsWith('\\')) return this.command(token.slice(1));
    if (/^[0-9]/.test(token)) return node('mn', {}, token);
    if (/^\p{L}$/u.test(token)) return node('mi', {}, token);
    if (token === '-') return node('mo', {}, '−');
    if (token === '~') return node('mspace', { width: '0.3em' });
    return node('mo', '|()[]'.includes(token) ? { stretchy: 'false' } : {}, token);
  }

  command(name) {
    const own = (object) => Object.hasOwn(object, name);
    if (own(letters)) return node('mi', {}, letters[name]);
    if (own(operators)) return node('mo', {}, operators[name]);
    if (own(large)) return node('mo', { largeop: String(this.display), movablelimits: 'false' }, large[name]);
    if (functions.has(name)) return node('mrow', {}, node('mi', {}, name), node('mspace', { width: '0.1em' }));
    if (own(spaces)) return node('mspace', { width: `${spaces[name]}em` });
    if (own(accents)) return node('mover', { accent: 'true' }, this.argument(), node('mo', {}, accents[name]));
    if (name === 'frac' || name === 'dfrac' || name === 'tfrac') return node('mfrac', {}, this.argument(), this.argument());
    if (name === 'binom') return fencedBy('(', node('mfrac', { linethickness: '0' }, this.argument(), this.argument()), ')');
    if (name === 'sqrt') return this.root();
    if (name === 'underline') return node('munder', {}, this.argument(), node('mo', {}, '_'));
    if (name === 'underbrace') return node('munder', {}, this.argument(), node('mo', {}, '⏟'));
    if (['text', 'textbf', 'textit', 'texttt', 'mbox'].includes(name)) {
      return node('mtext', {}, this.raw().replaceAll('\\', '').replace(/^ | $/g, '\u00a0'));
    }
    if (own(fonts)) return this.font(fonts[name]);
    if (name === 'mathbb') {
      const text = this.raw();
      return node('mi', {}, doubleStruck[text] ?? text);
    }
    if (name === 'mathcal' || name === 'mathscr' || name === 'mathfrak') return node('mi', {}, this.raw());
    if (name === 'boxed') return this.argument();
    if (name === 'left') return this.fenced();
    if (name === 'begin') return this.environment();
    if (/^[bB]ig+[lrm]?$/.test(name) || ignored.includes(name)) return null;
    if (['right', 'end'].includes(name)) throw new Error(`an unexpected \\${name}`);
    if (/^[{}%$#&_|]$/.test(name)) return node('mo', { stretchy: 'false' }, name === '|' ? '‖' : name);
    return node('mtext', {}, `\\${name}`);
  }

  font(weight) {
    const inner = this.argument();
    const all = inner.localName === 'mrow' ? [...inner.children] : [inner];
    if (weight === 'bold') inner.setAttribute('class', 'bold');
    else if (all.every((part) => part.localName === 'mi')) {
      return node('mi', weight === 'normal' ? { mathvariant: 'normal' } : {}, all.map((part) => part.textContent).join(''));
    }
    return inner;
  }

  root() {
    if (this.peek() !== '[') return node('msqrt', {}, this.argument());
    this.next();
    const index = this.row(']');
    this.next();
    return node('mroot', {}, this.argument(), index);
  }

  fence() {
    const token = this.next() ?? '.';
    if (token === '.') return '';
    return token.startsWith('\\') ? operators[token.slice(1)] ?? (token === '\\|' ? '‖' : token.slice(1)) : token;
  }

  fenced() {
    const open = this.fence();
    const inner = this.row('\\right');
    if (this.next() !== '\\right') throw new Error('\\left without \\right');
    return fencedBy(open, inner, this.fence());
  }

  environment() {
    const name = this.raw();
    if (!Object.hasOwn(fences, name)) throw new Error(`no environment ${name}`);
    if (name === 'array') this.raw();
    const rows = [[]];
    for (;;) {
      rows.at(-1).push(this.row('&', '\\\\', '\\end'));
      const token = this.next();
      if (token === undefined) throw new Error('\\begin without \\end');
      if (token === '\\\\') rows.push([]);
      if (token === '\\end') break;
    }
    if (this.raw() !== name) throw new Error('another \\end');
    const last = rows.at(-1);
    if (last.length === 1 && last[0].localName === 'mrow' && !last[0].children.length) rows.pop();
    const aligned = /align|split/.test(name);
    const cells = node('mtable', { class: aligned ? 'aligned' : name === 'cases' ? 'cases' : undefined },
      ...rows.map((row) => node('mtr', {}, ...row.map((cell) => node('mtd', {}, cell)))));
    const [open, close] = fences[name];
    return fencedBy(open, cells, close);
  }
}

/** Returns an element for a formula; null if it cannot be parsed. */
export function drawMath(source, display) {
  if (source.length > 4000) return null;
  try {
    const reader = new Reader(source, display);
    const parts = [];
    while (reader.peek() !== undefined) parts.push(reader.row());
    const math = node('math', display ? { display: 'block' } : {}, ...parts);
    return math;
  } catch {
    return null;
  }
}
