import type { CST, LineCounter } from 'yaml';

type Yaml = typeof import('yaml');

/**
 * How deeply objects and lists may be nested: a policy has five levels. Much deeper nesting would exhaust the stack, which may
 * kill the process.
 */
export const MOST_LEVELS = 64;

/** Lexemes to read before the rest of the process gets its turn: a millisecond or two. */
const LEXEMES_A_TURN = 1000;

/** Reads the tokens of a text, a part at a time; `undefined` if it is nested too deeply. */
export async function tokensOf(
  { Lexer, Parser }: Pick<Yaml, 'Lexer' | 'Parser'>,
  text: string,
  lines: LineCounter,
): Promise<CST.Token[] | undefined> {
  const parser = new Parser(lines.addNewLine);
  const tokens: CST.Token[] = [];
  lines.addNewLine(0);
  let lexemes = 0;
  for (const lexeme of new Lexer().lex(text)) {
    tokens.push(...parser.next(lexeme));
    if (parser.stack.length > MOST_LEVELS) return undefined;
    if (++lexemes % LEXEMES_A_TURN === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  tokens.push(...parser.end());
  return tokens;
}
