// Composes the fragments of lua/ into the one script that decides: their comments and indentation stay in the readable files,
// and the server is sent only what it runs.
import { readdirSync, readFileSync } from 'node:fs';
import { writeOut } from './inline.mjs';

const lua = new URL('./', import.meta.url);

const strip = (source) =>
  source
    .split('\n')
    .map((line) => line.trim().replace(/^--.*$|\s+-- .*$/, ''))
    .filter((line) => line !== '')
    .join('\n');

const text = (file) => readFileSync(new URL(file, lua), 'utf8');

/** A file of lua/, as the server is sent it. */
export const read = (file) => strip(text(file));

/** What stands before the algorithms, and behind them: each uses what the ones before it leave, as its first lines say. */
const { shared, driver, plain } = JSON.parse(text('fragments.json'));

/** Each fragment of algorithms/ and of features/ returns what it is made of, and is run only by a call that needs it. */
const fragmentsOf = (folder) =>
  readdirSync(new URL(`${folder}/`, lua))
    .toSorted()
    .map((file) => [file.replace('.lua', ''), read(`${folder}/${file}`)]);

/** A function that makes the fragment of a name, behind what all of them share. */
const makerOf = (what, fragments, common = []) => [
  `local function make_${what}(name)`,
  ...common,
  ...fragments.flatMap(([name, source]) => [`if name == '${name}' then`, source, 'end']),
  'end',
];

/** The names of the algorithms that the fast way knows. */
export const PLAIN = plain;

/** The algorithms that the fast way knows, each with its core: the fragment that leaves what its own uses. */
const plainAlgorithms = () =>
  plain.map((name) => {
    const source = text(`algorithms/${name}.lua`);
    const cores = shared.filter((file) => new RegExp(`= ${file.replace('-', '_')}\\(`).test(source));
    return { name, source, core: cores.map((file) => text(`${file}.lua`)).join('\n') };
  });

/**
 * The script that decides, with the fragments of lua/ and further ones: sources of algorithms, and of features, by their names. The
 * driver is a function of its own: a closure is made faster if what it refers to belongs to a function around the one that makes it.
 */
export function composeScript(moreAlgorithms = {}, moreFeatures = {}) {
  const stripped = (more) => Object.entries(more).map(([name, source]) => [name, strip(source)]);
  const [header, ...others] = shared;
  const helpers = ['milliseconds', 'time-to-live'].map((name) => text(`${name}.lua`));
  return [
    read(`${header}.lua`),
    strip(writeOut(text('plain.lua'), helpers, plainAlgorithms())),
    ...others.map((name) => read(`${name}.lua`)),
    ...makerOf('algorithm', [...fragmentsOf('algorithms'), ...stripped(moreAlgorithms)]),
    ...makerOf('feature', [...fragmentsOf('features'), ...stripped(moreFeatures)], [read('features.lua')]),
    'local function run()',
    ...driver.map((name) => read(`driver/${name}.lua`)),
    'end',
    'return run()',
  ].join('\n');
}
