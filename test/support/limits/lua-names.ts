/** The names of a piece of Lua. */
export interface LuaNames {
  /** Declared in its outermost block. */
  readonly left: ReadonlySet<string>;
  /** Used, and declared nowhere in it. */
  readonly free: ReadonlySet<string>;
}

const KEYWORDS = new Set(
  'and break do else elseif end false for function if in local nil not or repeat return then true until while'.split(
    ' ',
  ),
);
const OPENING = new Set(['(', '[', '{', 'function', 'if', 'do', 'repeat']);
const CLOSING = new Set([')', ']', '}', 'end', 'until']);
const TOKEN = /--[^\n]*|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|[A-Za-z_]\w*|\d[\w.]*|\.{2,3}|[=~<>]=|[^\s\w]/g;

/**
 * Finds the names that a piece of Lua declares and uses. It knows no scopes: a name that is declared anywhere in the piece is
 * taken for its own everywhere in it.
 */
export function namesOf(source: string): LuaNames {
  const tokens = (source.match(TOKEN) ?? []).filter((token) => !token.startsWith('--'));
  const declared = new Set<string>();
  const left = new Set<string>();
  const used = new Set<string>();
  const open: string[] = [];
  let at = 0;
  const names = (then: (name: string) => void) => {
    while (isName(tokens[at])) {
      then(tokens[at++]!);
      if (tokens[at] !== ',') break;
      at++;
    }
  };
  const declare = (name: string) => {
    declared.add(name);
    if (open.length === 0) left.add(name);
  };
  while (at < tokens.length) {
    const token = tokens[at++]!;
    if (OPENING.has(token)) open.push(token);
    else if (CLOSING.has(token)) open.pop();
    if (token === 'local' && tokens[at] === 'function') declare(tokens[at + 1]!);
    else if (token === 'local') names(declare);
    else if (token === 'for') names((name) => declared.add(name));
    else if (token === 'function') {
      while (tokens[at] !== '(') useUnlessField(at++);
      open.push('(');
      at++;
      names((name) => declared.add(name));
    } else useUnlessField(at - 1);
  }
  return { left, free: new Set([...used].filter((name) => !declared.has(name))) };

  function useUnlessField(index: number): void {
    const token = tokens[index]!;
    const before = tokens[index - 1] ?? '';
    if (!isName(token) || before === '.' || before === ':') return;
    const isKey = open.at(-1) === '{' && tokens[index + 1] === '=' && (before === '{' || before === ',');
    if (!isKey) used.add(token);
  }
}

function isName(token: string | undefined): boolean {
  return token !== undefined && /^[A-Za-z_]/.test(token) && !KEYWORDS.has(token);
}
