// Writes the script that decides, and the one that keeps overrides, as strings into lib/, so that the package needs no
// file at run time. `--check` writes nothing and fails if a module is stale.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { composeScript, PLAIN, read } from './compose.mjs';

/** Each a file, and the constants that it exports; the long script by a function, which the package has compressed. */
const modules = [
  { target: 'lib/storage/stores/redis/script.generated.ts', constants: {}, script: composeScript() },
  {
    target: 'lib/storage/stores/redis/fast-way/plain-algorithms.generated.ts',
    constants: { PLAIN_ALGORITHMS: PLAIN },
  },
  { target: 'lib/app/overrides/overrides-script.generated.ts', constants: { OVERRIDES_SCRIPT: read('overrides.lua') } },
  { target: 'lib/console/telemetry/fold-script.generated.ts', constants: { FOLD_SCRIPT: read('console-fold.lua') } },
  {
    target: 'lib/storage/features/regions/home-script.generated.ts',
    constants: { HOME_SCRIPT: read('region-home.lua') },
  },
  {
    target: 'lib/storage/features/regions/index-script.generated.ts',
    constants: { INDEX_SCRIPT: read('region-index.lua') },
  },
  {
    target: 'lib/storage/features/shares/tenants-script.generated.ts',
    constants: { TENANTS_SCRIPT: read('console-tenants.lua') },
  },
  {
    target: 'lib/integrations/throttler-storage/hits-script.generated.ts',
    constants: { HITS_SCRIPT: read('throttler-hits.lua') },
  },
];

for (const { target, constants, script } of modules) {
  const lines = Object.entries(constants).map(([name, value]) => {
    const type = Array.isArray(value) ? ': readonly string[]' : '';
    return `export const ${name}${type} = ${JSON.stringify(value)};\n`;
  });
  if (script !== undefined) lines.push(`export const decisionScript = (): string => ${JSON.stringify(script)};\n`);
  const text = `// Made from lua/ by lua/embed.mjs. Do not edit.\n${lines.join('')}`;
  const url = new URL(`../${target}`, import.meta.url);
  // A feature can be left out.
  if (!existsSync(new URL('.', url))) continue;
  if (!process.argv.includes('--check')) {
    writeFileSync(url, text);
  } else if (!existsSync(url) || readFileSync(url, 'utf8') !== text) {
    console.error(`${target} is stale: run \`npm run build:lua\``);
    process.exitCode = 1;
  }
}
