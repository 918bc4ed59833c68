type Yaml = typeof import('yaml');

/**
 * How deep objects and lists may lie in each other: a policy has five levels. What lies much deeper would use the stack up, of
 * which a process may die.
 */
export const MOST_LEVELS = 64;

/** Whether a text has more levels than are read. */
export function isTooDeep({ Lexer, Parser }: Pick<Yaml, 'Lexer' | 'Parser'>, text: string): boolean {
  const parser = new Parser();
  for (const lexeme of new Lexer().lex(text)) {
    // What has been read is of no use here: only what has not ended stays in the parser.
    for (const _ of parser.next(lexeme));
    if (parser.stack.length > MOST_LEVELS) return true;
  }
  return false;
}
