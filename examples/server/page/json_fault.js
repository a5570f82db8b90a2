// Finds the place where a text stops being JSON. The messages of browsers differ, and often name no place.

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"/y;
const WORD = /true|false|null/y;
const SPACE = /[ \t\r\n]*/y;

/** Returns {at, expected} of the first fault, or null. Recursive: a text that a reader types is not nested deep. */
export function faultIn(text) {
  let at = 0;
  const take = (pattern) => {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    if (match) at = pattern.lastIndex;
    return match !== null;
  };
  const skip = () => take(SPACE);
  const fail = (expected) => ({ at, expected });
  const next = (c) => {
    skip();
    if (text[at] !== c) return false;
    ++at;
    return true;
  };
  const members = (close, one, afterComma) => {
    if (next(close)) return null;
    for (;;) {
      const fault = one();
      if (fault) return fault;
      if (next(close)) return null;
      if (!next(',')) return fail(`a comma or ${close}`);
      skip();
      if (text[at] === close) return fail(afterComma);
    }
  };
  const value = () => {
    skip();
    if (text[at] === '{') {
      ++at;
      return members('}', () => {
        skip();
        if (!take(STRING)) return fail('a name in double quotes');
        return next(':') ? value() : fail('a colon');
      }, 'a name after the comma');
    }
    if (text[at] === '[') {
      ++at;
      return members(']', value, 'a value after the comma');
    }
    return take(STRING) || take(NUMBER) || take(WORD) ? null : fail('a value');
  };
  const fault = value();
  if (fault) return fault;
  skip();
  return at < text.length ? fail('nothing more') : null;
}
