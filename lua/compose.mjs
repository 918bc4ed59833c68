// Composes the fragments of lua/ into the one script that decides: their comments and indentation stay in the readable files,
// and the server is sent only what it runs.
import { readdirSync, readFileSync } from 'node:fs';

const lua = new URL('./', import.meta.url);

const strip = (source) =>
  source
    .split('\n')
    .map((line) => line.trim().replace(/^--.*$|\s+-- .*$/, ''))
    .filter((line) => line !== '')
    .join('\n');

/** A file of lua/, as the server is sent it. */
export const read = (file) => strip(readFileSync(new URL(file, lua), 'utf8'));

/** The algorithms of lua/algorithms/: name and source. */
const algorithms = () =>
  readdirSync(new URL('algorithms/', lua))
    .toSorted()
    .map((file) => [file.replace('.lua', ''), read(`algorithms/${file}`)]);

/**
 * The script that decides, with the algorithms of lua/algorithms/ and `more`: sources by the names of their algorithms. The driver
 * is a function of its own: a closure is made faster if what it refers to belongs to a function around the one that makes it.
 */
export function composeScript(more = {}) {
  const added = Object.entries(more).map(([name, source]) => [name, strip(source)]);
  return [
    read('header.lua'),
    read('arrival-time.lua'),
    read('window-count.lua'),
    ...[...algorithms(), ...added].map(([, source]) => source),
    'local function run()',
    read('driver.lua'),
    'end',
    'return run()',
  ].join('\n');
}
