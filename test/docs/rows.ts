import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from '@jest/globals';
import { PACKAGE_FOLDER } from '../support/processes/npm.js';

/** A row of a table that says what becomes of something. */
interface Row {
  /** Its first cell, without backquotes. */
  readonly name: string;
  /** The code of its second cell. */
  readonly code: readonly string[];
}

/** The rows of all tables of a guide, each of which a spec tries: in the same order, with the same code. */
export class Rows {
  private readonly rows: readonly Row[];
  private readonly source: string;
  private next = 0;

  /** `guide` and `spec` are paths inside the package. */
  constructor(
    private readonly guide: string,
    spec: string,
  ) {
    this.rows = rowsOf(readFileSync(join(PACKAGE_FOLDER, guide), 'utf8'));
    this.source = squeeze(readFileSync(join(PACKAGE_FOLDER, spec), 'utf8'));
  }

  /** Tries the next row. */
  tried(name: string, test: () => Promise<void>): void {
    const row = this.rows[this.next++];
    it(name, async () => {
      if (row?.name !== name) throw new Error(`${this.guide} has the row ${String(row?.name)} here, not ${name}`);
      const untried = row.code.filter((code) => !this.source.includes(squeeze(code)));
      if (untried.length > 0) throw new Error(`not tried, word for word: ${untried.join('  and  ')}`);
      await test();
    });
  }

  /** Call it last. */
  end(): void {
    const left = this.rows.slice(this.next).map(({ name }) => name);
    it('leaves no row out', () => {
      if (left.length > 0 || this.rows.length === 0) throw new Error(`not tried: ${left.join(', ')}`);
    });
  }
}

function rowsOf(markdown: string): Row[] {
  const lines = markdown.split('\n').filter((line) => line.startsWith('|'));
  // Each table begins with its header, and a line that underlines it.
  const rows = lines.filter((line, index) => !isRule(line) && !isRule(lines[index + 1] ?? ''));
  return rows.map((line) => {
    const [, first = '', second = ''] = line.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|'));
    const spans = second.matchAll(/`` (.+?) ``|`([^`]+)`/g);
    return { name: first.replaceAll('`', ''), code: [...spans].map(([, double, single]) => (double ?? single)!) };
  });
}

function isRule(line: string): boolean {
  return /^\|[ |:-]+$/.test(line);
}

/** Without what formatting may change. */
function squeeze(code: string): string {
  return code.replaceAll(/\s/g, '').replaceAll(/,(?=[\])}])/g, '');
}

/**
 * The code of a guide that a spec does not hold word for word: what stands between blank lines, but for empty bodies, imports and
 * what is exported. A whole example at the beginning is `started` by `whole-examples.spec.ts`.
 */
export function untriedCode(guide: string, spec: string, first: 'tried' | 'started' = 'tried'): string[] {
  const source = squeeze(withoutModules(readFileSync(join(PACKAGE_FOLDER, spec), 'utf8')));
  const markdown = readFileSync(join(PACKAGE_FOLDER, guide), 'utf8');
  return [...markdown.matchAll(/^```ts\n(.*?)^```/gms)]
    .slice(first === 'started' ? 1 : 0)
    .flatMap(([, code]) => withoutModules(code!).split('\n\n'))
    .map((piece) => piece.trim().replace(/\w+\(\) \{\}$|[;,]$/, ''))
    .filter((piece) => !source.includes(squeeze(piece)));
}

function withoutModules(code: string): string {
  return code.replaceAll(/^import .*\n|^export /gm, '');
}
