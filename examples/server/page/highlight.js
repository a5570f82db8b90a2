// Colours code line by line: comments, strings, numbers, keywords, called names. One tokenizer reads all languages by a table. It knows no
// grammars, because an error costs only a colour. The state after a line is the string or comment that the line leaves open.

const words = (text) => new Set(text.split(/\s+/));
const C_WORDS = `auto bool break case catch char class const constexpr continue default delete do double else enum explicit
    extern false final float for friend goto if inline int long mutable namespace new noexcept nullptr operator
    override private protected public return short signed sizeof static struct switch template this throw true try
    typedef typename union unsigned using virtual void volatile while size_t concept requires co_await co_return
    co_yield static_cast`;
const JS_WORDS = `abstract any as async await boolean break case catch class const continue debugger default delete do else enum
    export extends false finally for from function get if implements import in instanceof interface let new null
    number of private protected public readonly return set static string super switch this throw true try type
    typeof undefined var void while yield`;
const languages = {
  c: { words: words(C_WORDS), line: '//', block: ['/*', '*/'], strings: '"\'', hash: true },
  js: { words: words(JS_WORDS), line: '//', block: ['/*', '*/'], strings: '"\'`' },
  java: {
    words: words(`${JS_WORDS} byte char double final float int long native package short synchronized throws fun val when object
    override data sealed internal namespace using bool decimal string foreach record var is out ref struct virtual`),
    line: '//', block: ['/*', '*/'], strings: '"\'',
  },
  rust: {
    words: words(`as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move
    mut pub ref return self Self static struct super trait true type unsafe use where while i8 i16 i32 i64 u8 u16
    u32 u64 usize isize f32 f64 bool char str String Vec Option Result`),
    line: '//', block: ['/*', '*/'], strings: '"',
  },
  go: {
    words: words(`break case chan const continue default defer else fallthrough for func go goto if import interface map package
    range return select struct switch type var true false nil string int int64 float64 bool byte error any`),
    line: '//', block: ['/*', '*/'], strings: '"`',
  },
  swift: {
    words: words(`as associatedtype break case catch class continue default defer do else enum extension fallthrough false
    fileprivate for func guard if import in init inout internal is let nil operator private protocol public repeat
    return self Self static struct subscript super switch throw throws true try typealias var where while async
    await`),
    line: '//', block: ['/*', '*/'], strings: '"',
  },
  python: {
    words: words(`and as assert async await break case class continue def del elif else except False finally for from global if
    import in is lambda match None nonlocal not or pass raise return self True try while with yield`),
    line: '#', long: ['"""', "'''"], strings: '"\'',
  },
  ruby: {
    words: words(`alias and begin break case class def defined do else elsif end ensure false for if in module next nil not or
    redo rescue retry return self super then true undef unless until when while yield require puts`),
    line: '#', strings: '"\'',
  },
  shell: {
    words: words(`if then else elif fi for while until do done case esac in function return local export set unset readonly exit
    echo cd source sudo`),
    line: '#', strings: '"\'',
  },
  sql: {
    words: words(`select from where insert into values update set delete create table index view drop alter add primary key
    foreign references join left right inner outer full on as and or not null is in like between group by order
    having limit offset union all distinct case when then else end exists count sum avg min max with default unique`),
    line: '--', block: ['/*', '*/'], strings: '\'"', anyCase: true,
  },
  data: { words: words('true false null yes no on off'), line: '#', strings: '"\'', keys: true },
  json: { words: words('true false null'), strings: '"', keys: true },
  css: { words: words('important inherit initial none auto'), block: ['/*', '*/'], strings: '"\'', keys: true },
  markup: { words: words(''), block: ['<!--', '-->'], strings: '"\'', tags: true },
};
const names = {
  'c++': 'c', cpp: 'c', cc: 'c', cxx: 'c', h: 'c', hpp: 'c', cuda: 'c', cu: 'c', objc: 'c', glsl: 'c',
  javascript: 'js', jsx: 'js', ts: 'js', tsx: 'js', typescript: 'js', mjs: 'js', php: 'js',
  kotlin: 'java', kt: 'java', csharp: 'java', cs: 'java', 'c#': 'java', scala: 'java', dart: 'java',
  rs: 'rust', golang: 'go', py: 'python', python3: 'python', rb: 'ruby',
  sh: 'shell', bash: 'shell', zsh: 'shell', console: 'shell', dockerfile: 'shell', cmake: 'shell', makefile: 'shell', make: 'shell',
  yaml: 'data', yml: 'data', toml: 'data', ini: 'data', jsonc: 'json', json5: 'json', scss: 'css', less: 'css',
  html: 'markup', xml: 'markup', svg: 'markup', vue: 'markup', postgresql: 'sql', mysql: 'sql', sqlite: 'sql',
};

export function languageOf(name) {
  const key = name.toLowerCase();
  const found = names[key] ?? key;
  return Object.hasOwn(languages, found) ? languages[found] : null;
}

const NUMBER = /(?:0[xXbB][\da-fA-F_']+|\d[\d_']*(?:\.\d+)?(?:[eE][+-]?\d+)?)\w*/y;
const WORD = /[\p{L}_$][\p{L}\p{N}_$]*/uy;
const KEY = /(?:[\w.-]+|"(?:[^"\\]|\\.)*"|'[^']*')(?=\s*[:=](?!=))/y;
const LONGEST = 2000;  // characters; longer lines get no colours

function matchAt(pattern, line, at) {
  pattern.lastIndex = at;
  return pattern.exec(line)?.[0];
}

/** Returns the pieces [kind, text] of a line (kind '' for plain text), and the state for the next line ('' at the start). */
export function highlightLine(language, line, state) {
  const pieces = [];
  const add = (kind, text) => {
    if (pieces.length && pieces.at(-1)[0] === kind) pieces.at(-1)[1] += text;
    else if (text) pieces.push([kind, text]);
  };
  if (!language || line.length > LONGEST) return { pieces: [['', line]], state };
  let at = 0;
  /** Takes the text up to and with the mark that closes the open string or comment; without such a mark the whole rest. */
  const until = (end, kind, from) => {
    const close = line.indexOf(end, from);
    const to = close < 0 ? line.length : close + end.length;
    add(kind, line.slice(at, to));
    at = to;
    state = close < 0 ? end : '';
  };
  if (state) until(state, state.length === 3 && state !== '-->' ? 'string' : 'comment', 0);
  while (at < line.length) {
    const c = line[at];
    let text;
    const long = language.long?.find((mark) => line.startsWith(mark, at));
    if (long) {
      until(long, 'string', at + 3);
    } else if (language.block && line.startsWith(language.block[0], at)) {
      until(language.block[1], 'comment', at + language.block[0].length);
    } else if (language.line && line.startsWith(language.line, at)
      && (language.line !== '#' || at === 0 || /\s/.test(line[at - 1]))) {
      add('comment', line.slice(at));
      at = line.length;
    } else if (language.hash && c === '#' && !line.slice(0, at).trim()) {
      add('keyword', (text = /^#\s*\w*/.exec(line.slice(at))[0]));
      at += text.length;
    } else if (language.keys && (text = matchAt(KEY, line, at))) {
      add('name', text);
      at += text.length;
    } else if (language.strings.includes(c)) {
      let end = at + 1;
      while (end < line.length && line[end] !== c) end += line[end] === '\\' ? 2 : 1;
      add('string', line.slice(at, end + 1));
      at = end + 1;
    } else if (language.tags && c === '<' && (text = /^<\/?[\w:-]+/.exec(line.slice(at, at + 80))?.[0])) {
      add('keyword', text);
      at += text.length;
    } else if (/\d/.test(c)) {
      add('number', (text = matchAt(NUMBER, line, at)));
      at += text.length;
    } else if ((text = matchAt(WORD, line, at))) {
      const isWord = language.words.has(language.anyCase ? text.toLowerCase() : text);
      add(isWord ? 'keyword' : line[at + text.length] === '(' ? 'name' : '', text);
      at += text.length;
    } else {
      add('', c);
      ++at;
    }
  }
  return { pieces, state };
}
