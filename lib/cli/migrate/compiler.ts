import { createRequire } from 'node:module';
import { realpathSync } from 'node:fs';
import { join } from 'node:path';
import type TS from 'typescript';
import { migrateMessages } from '../../engine/errors/messages/cli.js';
import { InputError } from '../command.js';

/** The API of the TypeScript compiler. */
export type Compiler = typeof TS;

/** TypeScript 7 has no JavaScript API. Projects that use it may have version 6 installed as well. */
const PACKAGES = ['typescript', '@typescript/typescript6', 'typescript-6', 'typescript5'];

/**
 * Loads the compiler API: the project's own, that of Nest's CLI, or the one installed together with this program, as `npx -p typescript@5
 * -p nestjs-sluice` does. Throws `InputError` if there is none.
 */
export function loadCompiler(folder: string): Compiler {
  const places = [createRequire(join(folder, 'package.json'))];
  for (const host of ['@nestjs/cli/package.json', '@nestjs/schematics/package.json']) {
    const path = attempt(() => places[0]!.resolve(host));
    if (path !== undefined) places.push(createRequire(path));
  }
  const program = process.argv[1];
  const ownPath = program === undefined ? undefined : attempt(() => realpathSync(program));
  if (ownPath !== undefined) places.push(createRequire(ownPath));
  let native: string | undefined;
  for (const place of places) {
    for (const name of PACKAGES) {
      const found = attempt(() => place(name) as Partial<Compiler>);
      if (typeof found?.createSourceFile === 'function') return found as Compiler;
      native ??= found?.version;
    }
  }
  throw new InputError(migrateMessages.noCompiler(folder, native));
}

function attempt<Result>(run: () => Result): Result | undefined {
  try {
    return run();
  } catch {
    return undefined;
  }
}
