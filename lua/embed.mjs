// Writes the script that decides, and the one that keeps overrides, as strings into lib/, so that the package needs no
// file at run time. `--check` writes nothing and fails if a module is stale.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { composeScript, read } from './compose.mjs';

const modules = [
  { target: 'lib/stores/redis/script.generated.ts', name: 'SCRIPT', script: composeScript() },
  { target: 'lib/overrides/overrides-script.generated.ts', name: 'OVERRIDES_SCRIPT', script: read('overrides.lua') },
];

for (const { target, name, script } of modules) {
  const text = `// Made from lua/ by lua/embed.mjs. Do not edit.\nexport const ${name} = ${JSON.stringify(script)};\n`;
  const url = new URL(`../${target}`, import.meta.url);
  if (!process.argv.includes('--check')) {
    writeFileSync(url, text);
  } else if (!existsSync(url) || readFileSync(url, 'utf8') !== text) {
    console.error(`${target} is stale: run \`npm run build:lua\``);
    process.exitCode = 1;
  }
}
