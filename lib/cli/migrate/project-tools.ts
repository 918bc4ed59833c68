import { readFileSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type TS from 'typescript';
import { migrateMessages } from '../../engine/errors/messages/cli.js';
import { InputError } from '../command.js';

/** The content of a JSON file; `undefined` if it can't be read. */
export function jsonOf(path: string): Record<string, unknown> | undefined {
  return attempt(() => JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>);
}

/** A folder and those that it is in, the nearest first. */
export function withParents(folder: string): string[] {
  const parent = dirname(folder);
  return parent === folder ? [folder] : [folder, ...withParents(parent)];
}

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

/** The part of Prettier that the program uses, in types that fit versions 2 and 3. */
interface Prettier {
  resolveConfig(path: string, options: object): Promise<object | null>;
  getFileInfo(path: string, options: object): Promise<{ readonly ignored: boolean }>;
  check(text: string, options: object): boolean | Promise<boolean>;
  format(text: string, options: object): string | Promise<string>;
}

/** Formats changed files with the project's own Prettier. */
export class Formatter {
  private prettier: Promise<Prettier | undefined> | undefined;

  constructor(private readonly folder: string) {}

  /**
   * Formats the new text of a file with the project's Prettier. Returns it unchanged if the project has no Prettier, or if the file wasn't
   * formatted with it before, since other lines would also change.
   */
  async format(path: string, before: string, after: string): Promise<string> {
    this.prettier ??= this.load();
    const prettier = await this.prettier;
    if (prettier === undefined) return after;
    try {
      const { ignored } = await prettier.getFileInfo(path, { ignorePath: join(this.folder, '.prettierignore') });
      if (ignored) return after;
      // Files are read without carriage returns, regardless of the project's line ends.
      const options = {
        ...(await prettier.resolveConfig(path, { editorconfig: true })),
        filepath: path,
        endOfLine: 'lf',
      };
      return (await prettier.check(before, options)) ? await prettier.format(after, options) : after;
    } catch {
      // A broken configuration or a missing plugin is left to the project.
      return after;
    }
  }

  private async load(): Promise<Prettier | undefined> {
    try {
      const path = createRequire(join(this.folder, 'package.json')).resolve('prettier');
      const loaded = (await import(pathToFileURL(path).href)) as { default?: Prettier } & Prettier;
      return loaded.default ?? loaded;
    } catch {
      return undefined;
    }
  }
}
