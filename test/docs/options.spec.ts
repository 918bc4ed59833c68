import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { algorithms } from '../../lib/engine/algorithms/index.js';
import { COMMON_OPTIONS, isDefault, limitOptions } from '../../lib/app/config/limit-options.js';
import { type OptionRow, requiredOf, usualOf } from '../../lib/engine/options/option-row.js';
import { PACKAGE_FOLDER } from '../support/processes/npm.js';

const read = (page: string) => readFileSync(join(PACKAGE_FOLDER, 'docs/reference', page), 'utf8');
const section = read('limit-options.md');

/** The cells of the rows of all tables with a header. */
function rowsBelow(header: RegExp): string[][] {
  const lines = section.split('\n');
  return lines.flatMap((one, at) => {
    if (!header.test(one)) return [];
    const end = lines.findIndex((line, index) => index > at && !line.startsWith('|'));
    return lines.slice(at + 2, end).map((line) => line.split(/(?<!\\)\|/).map((cell) => cell.trim()));
  });
}

/** The code of a text. */
const codeOf = (text: string) => [...text.matchAll(/`([^`]+)`/g)].map(([, code]) => code!);

describe("the reference's options of limits", () => {
  it('are all that there are, with their defaults', () => {
    const rows = rowsBelow(/^\| option +\| default/).map(([, name, usual]) => [
      codeOf(name!)[0],
      usual!.replaceAll('`', ''),
    ]);
    const all = COMMON_OPTIONS.map((option) => [option, usualOf(limitOptions[option] as OptionRow)]);
    expect(new Set(rows.map(String))).toEqual(new Set(all.map(String)));
    expect(rows).toHaveLength(all.length);
  });

  it.each(algorithms.names.filter((name) => name !== 'adaptive'))('are those of %s', (algo) => {
    const own = algorithms.get(algo)!.options;
    const table = rowsBelow(/^\| `?algo`? +\| parameters/);
    expect(table.map(([, name]) => name)).toContain(`\`${algo}\``);
    const [, , parameters] = table.find(([, name]) => name === `\`${algo}\``)!;
    const named = codeOf(parameters!.replaceAll(/ = (`[^`]+`)( or `[^`]+`)?/g, ''));
    // One sentence behind the table tells of these.
    const all = Object.keys(own).filter((option) => named.includes(option) || !['hold', 'onLapse'].includes(option));
    expect(named.toSorted()).toEqual(all.toSorted());
    for (const option of requiredOf(own)) expect(named.slice(0, 2)).toContain(option);
    for (const [, option, usual] of parameters!.matchAll(/`(\w+)` = `?([^`,|]+?)`?(?=[,| ]|$)/g)) {
      expect([option, [own[option!]!.usual, usualOf(own[option!]!)].join(' ')]).toEqual([
        option,
        expect.stringContaining(usual!),
      ]);
    }
  });

  it("are those that the module's defaults take", () => {
    const [, text] = /## `defaults`\n\nTakes ([^.]+)\./.exec(read('module-options.md'))!;
    expect(codeOf(text!).toSorted()).toEqual(COMMON_OPTIONS.filter((option) => isDefault(option)).toSorted());
  });
});
