/**
 * With `TEST_SCRIPT_KEYS=declared` in the environment, all specs run on scripts that fail as soon as they touch a key that is not in
 * KEYS, as some managed services make them.
 */
import { readFileSync } from 'node:fs';

const IS_ON = process.env['TEST_SCRIPT_KEYS'] === 'declared';
/** Where a script begins in a compiled module that lua/embed.mjs wrote. */
const SCRIPT = /((?:^|\n)const (?:[A-Z_]+SCRIPT = |decisionScript = \(\)\s*=>\s*))"/g;

const text = () => readFileSync(new URL('declared-keys.lua', import.meta.url), 'utf8').replaceAll(/^--.*\n|^\s+/gm, '');

export function withDeclaredKeys(path, source) {
  if (!IS_ON || (!path.endsWith('-script.generated.ts') && !path.endsWith('/script.generated.ts'))) return source;
  let found = 0;
  const checked = source.replaceAll(SCRIPT, (_, before) => {
    found++;
    return `${before}${JSON.stringify(text())} + "`;
  });
  if (found !== 1) throw new Error(`${path} has ${found} scripts, expected 1`);
  return checked;
}
