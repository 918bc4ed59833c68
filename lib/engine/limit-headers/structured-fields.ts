/** A token, such as `default` in `default;r=50`: a name that isn't quoted. */
export interface Token {
  readonly token: string;
}

/** A value of RFC 9651; `undefined` for kinds that limits don't use, such as byte sequences. */
export type Value = number | string | Token | undefined;

/** A value with its parameters. */
export interface Item {
  readonly value: Value;
  readonly parameters: ReadonlyMap<string, Value>;
}

const SPACES = / */y;
const SPACES_AND_TABS = /[ \t]*/y;
const COMMA = /[ \t]*,[ \t]*/y;
const KEY = /[a-z*][a-z0-9_.*-]*/y;
const NUMBER = /-?(?:\d{1,12}\.\d{1,3}|\d{1,15})(?![\d.])/y;
const STRING = /"(?:[ !#-[\]-~]|\\["\\])*"/y;
const TOKEN = /[A-Za-z*][\w!#$%&'*+.^`|~:/-]*/y;
/** Byte sequences, booleans, dates and display strings. */
const OTHER = /:[\w+/=-]*:|\?[01]|@-?\d{1,15}(?![\d.])|%"(?:[ !#$&-~]|%[\da-f]{2})*"/y;

/** Reads structured fields from the left to the right. Its methods throw if the text is malformed. */
class Reader {
  private at = 0;

  constructor(private readonly text: string) {}

  members<T>(member: () => T): T[] {
    const members: T[] = [];
    this.take(SPACES);
    do members.push(member());
    while (this.take(COMMA) !== undefined);
    this.take(SPACES_AND_TABS);
    if (this.at < this.text.length) throw new SyntaxError();
    return members;
  }

  /** Reads an item; `undefined` for a list within the list. */
  item(): Item | undefined {
    if (!this.skip('(')) return { value: this.value(), parameters: this.parameters() };
    for (this.take(SPACES); !this.skip(')');) {
      this.value();
      this.parameters();
      if (this.take(SPACES) === '' && this.text[this.at] !== ')') throw new SyntaxError();
    }
    this.parameters();
    return undefined;
  }

  entry(): readonly [key: string, value: Value] {
    const key = this.key();
    if (this.skip('=')) return [key, this.item()?.value];
    this.parameters();
    return [key, undefined];
  }

  private parameters(): Map<string, Value> {
    const parameters = new Map<string, Value>();
    while (this.skip(';')) {
      this.take(SPACES);
      parameters.set(this.key(), this.skip('=') ? this.value() : undefined);
    }
    return parameters;
  }

  private key(): string {
    const key = this.take(KEY);
    if (key === undefined) throw new SyntaxError();
    return key;
  }

  private value(): Value {
    const number = this.take(NUMBER);
    if (number !== undefined) return Number(number);
    const text = this.take(STRING);
    if (text !== undefined) return text.slice(1, -1).replaceAll(/\\(.)/g, '$1');
    const token = this.take(TOKEN);
    if (token !== undefined) return { token };
    if (this.take(OTHER) === undefined) throw new SyntaxError();
    return undefined;
  }

  private skip(character: string): boolean {
    const isNext = this.text[this.at] === character;
    if (isNext) this.at++;
    return isNext;
  }

  private take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.at;
    const [found] = pattern.exec(this.text) ?? [];
    if (found !== undefined) this.at += found.length;
    return found;
  }
}

/** Reads a list, without the lists in it; nothing if it is malformed. */
export function itemsOf(text: string): Item[] {
  const reader = new Reader(text);
  return attempt(() => reader.members(() => reader.item()))?.filter((item) => item !== undefined) ?? [];
}

/** Reads the values of a dictionary, without their parameters; nothing if it is malformed. */
export function dictionaryOf(text: string): ReadonlyMap<string, Value> {
  const reader = new Reader(text);
  return new Map(attempt(() => reader.members(() => reader.entry())));
}

function attempt<T>(parse: () => T): T | undefined {
  try {
    return parse();
  } catch {
    return undefined;
  }
}
