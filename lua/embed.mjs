// Composes the fragments into the one script that decides, and writes it, and the one that keeps overrides, as strings into
// lib/redis/, so that the package needs no file at run time. `--check` writes nothing and fails if a module is stale.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';

const lua = new URL('./', import.meta.url);

/** Comments and indentation stay in the readable files; the server is sent only what it runs. */
const strip = (source) =>
  source
    .split('\n')
    .map((line) => line.trim().replace(/^--.*$|\s+-- .*$/, ''))
    .filter((line) => line !== '')
    .join('\n');

const read = (file) => strip(readFileSync(new URL(file, lua), 'utf8'));

/** What stands before the algorithms, and behind them: each uses what the ones before it leave, as its first lines say. */
const { shared, driver } = JSON.parse(readFileSync(new URL('fragments.json', lua), 'utf8'));

/** Each fragment of algorithms/ returns what it is made of, and is run only by a call that needs it. */
const algorithms = readdirSync(new URL('algorithms/', lua))
  .toSorted()
  .flatMap((file) => [`if name == '${file.replace('.lua', '')}' then`, read(`algorithms/${file}`), 'end']);

/**
 * The driver is a function of its own: a closure is made faster if what it refers to belongs to a function around the one that
 * makes it.
 */
const script = [
  ...shared.map((name) => read(`${name}.lua`)),
  'local function make_algorithm(name)',
  ...algorithms,
  'end',
  'local function run()',
  ...driver.map((name) => read(`driver/${name}.lua`)),
  'end',
  'return run()',
];

const modules = [
  { target: 'lib/redis/script.generated.ts', name: 'SCRIPT', source: script.join('\n') },
  { target: 'lib/redis/rates-script.generated.ts', name: 'RATES_SCRIPT', source: read('overrides.lua') },
];

for (const { target, name, source } of modules) {
  const text = `// Made from lua/ by lua/embed.mjs. Do not edit.\nexport const ${name} = ${JSON.stringify(source)};\n`;
  const url = new URL(`../${target}`, import.meta.url);
  if (!process.argv.includes('--check')) {
    writeFileSync(url, text);
  } else if (!existsSync(url) || readFileSync(url, 'utf8') !== text) {
    console.error(`${target} is stale: run \`npm run build:lua\``);
    process.exitCode = 1;
  }
}
