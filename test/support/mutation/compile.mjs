import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { transformSync } from '@swc/core';
import { SWC_OPTIONS } from '../jest/swc-options.mjs';

const GLOBALS = new URL('jest-globals.mjs', import.meta.url).href;

/** Compiles the library and its specs in a folder, each file beside its source, for Node alone. */
export function compile(folder) {
  const sources = ['lib', 'test'].flatMap((name) =>
    readdirSync(join(folder, name), { recursive: true, encoding: 'utf8' }).map((file) => join(name, file)),
  );
  for (const file of sources.filter((name) => /(?<!\.d)\.ts$/.test(name))) {
    const source = join(folder, file);
    const target = source.replace(/ts$/, 'js');
    if (existsSync(target)) continue;
    const { code } = transformSync(readFileSync(source, 'utf8'), {
      ...SWC_OPTIONS,
      filename: source,
    });
    writeFileSync(target, file.startsWith('test') ? redirected(code) : code);
  }
}

/** Specs of every store try the one in process alone, which runs the mutants. */
function redirected(code) {
  return code
    .replaceAll(/(['"])@jest\/globals\1/g, `'${GLOBALS}'`)
    .replaceAll(/(?<=\/support\/limits\/)stores\.js/g, 'memory-only.js');
}
