// Composes the fragments into the one script that decides, and writes it, and the one that keeps changed rates, as strings
// into lib/redis/, so that the package needs no file at run time. `--check` writes nothing and fails if a module is stale.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';

const lua = new URL('./', import.meta.url);

const algorithms = readdirSync(new URL('algorithms/', lua)).toSorted();
const files = [
  'header.lua',
  'arrival-time.lua',
  'window-count.lua',
  ...algorithms.map((file) => `algorithms/${file}`),
  'driver.lua',
];

/** Comments and indentation stay in the readable files; the server is sent only what it runs. */
const strip = (source) =>
  source
    .split('\n')
    .map((line) => line.trim().replace(/^--.*$|\s+-- .*$/, ''))
    .filter((line) => line !== '')
    .join('\n');

/**
 * The fragments of the script as one. The last one is a function of its own: a closure is made faster if what it refers to
 * belongs to a function around the one that makes it.
 */
const compose = (fragments) => [
  ...fragments.slice(0, -1),
  'local function run()',
  fragments.at(-1),
  'end',
  'return run()',
];

/** The modules, and the fragments of the script in each. */
const modules = [
  { target: 'lib/redis/script.generated.ts', name: 'SCRIPT', files },
  { target: 'lib/redis/rates-script.generated.ts', name: 'RATES_SCRIPT', files: ['rates.lua'] },
];

for (const { target, name, files } of modules) {
  const script = compose(files.map((file) => strip(readFileSync(new URL(file, lua), 'utf8')))).join('\n');
  const text = `// Made from lua/ by lua/embed.mjs. Do not edit.\nexport const ${name} = ${JSON.stringify(script)};\n`;
  const url = new URL(`../${target}`, import.meta.url);
  if (!process.argv.includes('--check')) {
    writeFileSync(url, text);
  } else if (!existsSync(url) || readFileSync(url, 'utf8') !== text) {
    console.error(`${target} is stale: run \`npm run build:lua\``);
    process.exitCode = 1;
  }
}
