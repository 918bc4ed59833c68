// Composes the fragments into the one script and writes it as a string into lib/redis/script.generated.ts, so that the
// package needs no file at run time. `--check` writes nothing and fails if that module is stale.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';

const lua = new URL('./', import.meta.url);
const target = new URL('../lib/redis/script.generated.ts', import.meta.url);

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

const script = files.map((file) => strip(readFileSync(new URL(file, lua), 'utf8'))).join('\n');
const text = `// Made from lua/ by lua/embed.mjs. Do not edit.\nexport const SCRIPT = ${JSON.stringify(script)};\n`;

if (process.argv.includes('--check')) {
  if (readFileSync(target, 'utf8') !== text) {
    console.error('lib/redis/script.generated.ts is stale: run `npm run build:lua`');
    process.exitCode = 1;
  }
} else {
  writeFileSync(target, text);
}
