import { extname } from 'node:path';
import type { CST, Document, LineCounter, Node, Pair } from 'yaml';
import { policyMessages } from '../../engine/errors/messages/rates.js';
import { show } from '../../engine/errors/wording.js';
import { type Located, type LocatedEntry, type Place, within } from './located.js';
import type { Problems } from './problems.js';

/** The maximum file size. The YAML parser handles the file synchronously, which blocks the process for 0.4 to 1 second at this size. */
export const MOST_BYTES = 512 * 1024;

const ENDINGS: readonly string[] = ['.yaml', '.yml', '.json'];

/** Returns true if a file has an extension of policy files. */
export function isPolicyPath(path: string): boolean {
  return ENDINGS.includes(extname(path).toLowerCase());
}

/** Parses a file as YAML or JSON. Returns `undefined` if it is neither, and reports the problems. */
export async function readText(name: string, bytes: Buffer, problems: Problems): Promise<Located | undefined> {
  const whole = { name, path: '' };
  if (bytes.length > MOST_BYTES) return problems.add(whole, policyMessages.tooLarge(MOST_BYTES));
  const text = decoded(bytes);
  if (text === undefined) return problems.add(whole, policyMessages.notText());
  const isJson = extname(name).toLowerCase() === '.json';
  // `JSON.parse` doesn't report lines, so the YAML parser reads JSON as well.
  const value = await parseYaml(name, text, isJson, problems);
  const wrong = isJson && value !== undefined ? jsonError(text) : undefined;
  if (wrong === undefined) return value;
  const line = wrong.offset === undefined ? {} : positionOf(text, wrong.offset);
  return problems.add({ ...whole, ...line }, policyMessages.notJson(wrong.reason));
}

function decoded(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function jsonError(text: string): { reason: string; offset: number | undefined } | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    const { message } = error as Error;
    const [, offset] = /at position (\d+)/.exec(message) ?? [];
    return { reason: message.replace(/ ?\(line.*\)$/, ''), offset: offset === undefined ? undefined : Number(offset) };
  }
}

function positionOf(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset).split('\n');
  return { line: before.length, column: before.at(-1)!.length + 1 };
}

type Yaml = typeof import('yaml');

/**
 * The maximum nesting of objects and lists. A policy has five levels; much deeper nesting would overflow the stack, which may terminate the
 * process.
 */
const MOST_LEVELS = 64;

/** The number of lexemes to read before the rest of the process gets its turn, which takes a millisecond or two. */
const LEXEMES_A_TURN = 1000;

/** Reads the tokens of a text in slices; `undefined` if it is nested too deeply. */
async function tokensOf(
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

/** The data that the values of one file share. */
interface YamlFile {
  readonly name: string;
  readonly yaml: Yaml;
  readonly lines: LineCounter;
  readonly problems: Problems;
}

/** A value that no option accepts. It isn't `undefined`, which would mean a missing option. */
const NO_VALUE = Symbol('no value');

/** A value in a YAML or JSON file. Anchors, aliases, tags and duplicate names are reported as problems. */
class YamlValue implements Located {
  readonly place: Place;
  readonly value: unknown;
  private readonly node: Node | null;

  constructor(
    node: Node | null,
    private readonly file: YamlFile,
    path: string,
    /** The place to report if the value is missing. */
    fallback: Place = placeOf(file, 0, path),
  ) {
    const { yaml } = file;
    this.place = node?.range ? placeOf(file, node.range[0], path) : { ...fallback, path };
    const isRead = node === null || isPlain(node, this.place, file);
    this.node = isRead ? node : null;
    this.value = !isRead ? NO_VALUE : node === null ? null : yaml.isScalar(node) ? node.value : NO_VALUE;
  }

  get shown(): string {
    if (this.file.yaml.isMap(this.node)) return 'an object';
    if (this.file.yaml.isSeq(this.node)) return 'a list';
    return this.value === NO_VALUE ? 'what is not read' : show(this.value);
  }

  get entries(): readonly LocatedEntry[] | undefined {
    const { node, file } = this;
    if (!file.yaml.isMap(node)) return undefined;
    const names = new Set<string>();
    return (node.items as Pair<Node, Node | null>[]).flatMap(({ key, value }) => {
      const name = file.yaml.isScalar(key) ? key.value : undefined;
      const path = typeof name === 'string' ? within(this.place.path, name) : this.place.path;
      const place = key?.range ? placeOf(file, key.range[0], path) : this.place;
      if (typeof name !== 'string') {
        file.problems.add(place, policyMessages.wrongName());
        return [];
      }
      if (!isPlain(key, place, file)) return [];
      if (names.has(name)) file.problems.add(place, policyMessages.twice(name));
      names.add(name);
      return [{ name, place, value: new YamlValue(value, file, path, place) }];
    });
  }

  get items(): readonly Located[] | undefined {
    const { node, file } = this;
    if (!file.yaml.isSeq(node)) return undefined;
    return (node.items as (Node | null)[]).map(
      (item, index) => new YamlValue(item, file, within(this.place.path, index), this.place),
    );
  }
}

/** Parses YAML or JSON, which is a subset of YAML. Returns `undefined` if the text is neither, and reports the problems. */
async function parseYaml(
  name: string,
  text: string,
  isJson: boolean,
  problems: Problems,
): Promise<Located | undefined> {
  const yaml = await import('yaml');
  const lines = new yaml.LineCounter();
  const file: YamlFile = { name, yaml, lines, problems };
  const tokens = await tokensOf(yaml, text, lines);
  if (tokens === undefined)
    return problems.add({ name, path: '' }, policyMessages.notYaml(policyMessages.tooDeep(MOST_LEVELS)));
  const composer = new yaml.Composer({
    version: '1.2',
    schema: 'core',
    // The parser compares each name with all before it, which would take minutes for a long file.
    uniqueKeys: false,
    merge: false,
    prettyErrors: false,
  });
  const documents = composer.compose(tokens, true, text.length) as Iterator<Document.Parsed>;
  // A text always contains at least one document.
  const document = documents.next().value as Document.Parsed;
  const another = documents.next().value as Document.Parsed | undefined;
  const [error] = document.errors;
  if (error !== undefined || another !== undefined) {
    const offset = error?.pos[0] ?? another!.range[0];
    return problems.add(
      placeOf(file, offset, ''),
      policyMessages.notYaml(error?.message ?? 'Source contains multiple documents'),
    );
  }
  if (document.contents === null) return problems.add({ name, path: '' }, policyMessages.empty());
  const foreign = isJson ? notOfJson(document, yaml) : undefined;
  if (foreign !== undefined) {
    const place = placeOf(file, foreign.range?.[0] ?? 0, '');
    return problems.add(
      place,
      policyMessages.notJson('expected objects in braces, lists in brackets, texts in double quotes'),
    );
  }
  return new YamlValue(document.contents, file, '');
}

/** The first node that JSON does not support. Everything else, such as comments, is left to `JSON.parse`. */
function notOfJson(document: Document.Parsed, { visit }: Yaml): Node | undefined {
  let found: Node | undefined;
  const find = (node: Node) => {
    found = node;
    return visit.BREAK;
  };
  visit(document, {
    Collection: (_, node) => (node.flow === true ? undefined : find(node)),
    Alias: (_, node) => find(node),
    Scalar: (role, node) => {
      const isLiteral = role !== 'key' && node.type === 'PLAIN' && typeof node.value !== 'string';
      return isLiteral || node.type === 'QUOTE_DOUBLE' ? undefined : find(node);
    },
  });
  return found;
}

function placeOf({ name, lines }: Pick<YamlFile, 'name' | 'lines'>, offset: number, path: string): Place {
  const { line, col } = lines.linePos(offset);
  return line === 0 ? { name, path } : { name, path, line, column: col };
}

/** Returns true if a node is accepted; otherwise adds a problem. */
function isPlain(node: Node, place: Place, { yaml, problems }: YamlFile): boolean {
  if (yaml.isAlias(node) || (node as { anchor?: string }).anchor !== undefined) {
    problems.add(place, policyMessages.noAnchors());
    return false;
  }
  if (node.tag !== undefined) {
    problems.add(place, policyMessages.noTags(node.tag));
    return false;
  }
  return true;
}
