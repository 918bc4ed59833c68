import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import ts from 'typescript';
import { PACKAGE_FOLDER } from '../../support/processes/npm.js';
import { type ProgramRun, runHere } from '../run-program.js';

/** Files by their paths, inside a folder. */
export type Files = Readonly<Record<string, string>>;

/** A folder with an application, in which `migrate` runs. */
export class AppFolder {
  readonly path = mkdtempSync(join(tmpdir(), 'sluice-migrate-'));

  constructor(files: Files) {
    for (const [name, text] of Object.entries(files)) this.write(name, text);
  }

  write(name: string, text: string): void {
    mkdirSync(dirname(join(this.path, name)), { recursive: true });
    writeFileSync(join(this.path, name), text);
  }

  files(): Files {
    const names = readdirSync(this.path, { recursive: true, encoding: 'utf8' }).filter((name) => /\.\w+$/.test(name));
    return Object.fromEntries(
      names
        .filter((name) => !name.startsWith('.git'))
        .map((name) => [name, readFileSync(join(this.path, name), 'utf8')]),
    );
  }

  async migrate(...args: string[]): Promise<ProgramRun> {
    const before = process.cwd();
    process.chdir(this.path);
    try {
      return await runHere(['migrate', ...args]);
    } finally {
      process.chdir(before);
    }
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** Packages that the applications use, and that are not installed here. */
const AMBIENT: Files = {
  'config.d.ts': `declare module '@nestjs/config' {
    export class ConfigService { get<T = any>(name: string): T; get<T = any>(name: string, otherwise: T): T }
    export class ConfigModule {}
  }`,
  'storages.d.ts': `declare module '@nest-lab/throttler-storage-redis' { export class ThrottlerStorageRedisService { constructor(connection?: unknown) } }
    declare module 'nestjs-throttler-storage-redis' { export class ThrottlerStorageRedisService { constructor(connection?: unknown) } }`,
};

/** What the compiler says of applications, by their names; paths are inside the application. */
export function compilerErrors(apps: Readonly<Record<string, Files>>): string[] {
  const root = join(PACKAGE_FOLDER, 'test', 'moved');
  const texts = new Map(Object.entries(AMBIENT).map(([name, text]) => [join(root, name), text]));
  const names = new Map<string, string>();
  for (const [index, [app, files]] of Object.entries(apps).entries()) {
    for (const [name, text] of Object.entries(files)) {
      if (!name.endsWith('.ts')) continue;
      const path = join(root, String(index), name);
      texts.set(path, text);
      names.set(path, `${app}: ${name}`);
    }
  }
  const options: ts.CompilerOptions = {
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.ES2022,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    strict: true,
    skipLibCheck: true,
    noEmit: true,
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
    isolatedModules: true,
    types: ['node'],
    customConditions: [],
    paths: { 'nestjs-sluice': [join(PACKAGE_FOLDER, 'lib/index.ts')] },
  };
  const host = ts.createCompilerHost(options);
  const disk = ts.createCompilerHost(options);
  host.fileExists = (path) => texts.has(path) || disk.fileExists(path);
  host.readFile = (path) => texts.get(path) ?? disk.readFile(path);
  host.directoryExists = (path) => path.startsWith(root) || disk.directoryExists?.(path) === true;
  host.getSourceFile = (path, version, ...rest) => {
    const text = texts.get(path);
    return text === undefined
      ? disk.getSourceFile(path, version, ...rest)
      : ts.createSourceFile(path, text, version, true);
  };
  const program = ts.createProgram([...texts.keys()], options, host);
  return program
    .getSourceFiles()
    .filter(({ fileName }) => texts.has(fileName))
    .flatMap((file) => [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)])
    .map(({ file, start, messageText }) => {
      const { line } = file!.getLineAndCharacterOfPosition(start!);
      return `${names.get(file!.fileName)}:${line + 1} ${ts.flattenDiagnosticMessageText(messageText, ' ')}`;
    });
}

/** How often code names what it imports from some packages. */
export function usesOf(files: Files, packages: RegExp): number {
  let count = 0;
  for (const [name, text] of Object.entries(files)) {
    if (!name.endsWith('.ts')) continue;
    const file = ts.createSourceFile(name, text, ts.ScriptTarget.Latest, true);
    const imported = new Set<string>();
    for (const statement of file.statements) {
      if (!ts.isImportDeclaration(statement)) continue;
      if (!packages.test((statement.moduleSpecifier as ts.StringLiteral).text)) continue;
      const bindings = statement.importClause?.namedBindings;
      if (bindings !== undefined && ts.isNamedImports(bindings))
        for (const one of bindings.elements) imported.add(one.name.text);
    }
    const visit = (node: ts.Node): void => {
      if (ts.isImportDeclaration(node)) return;
      if (ts.isIdentifier(node) && imported.has(node.text)) count++;
      ts.forEachChild(node, visit);
    };
    visit(file);
  }
  return count;
}

/**
 * Runs a script beside the compiled files of an application, in a process that finds the packages which are installed here, and this
 * one. Returns what it printed.
 */
export async function runApp(files: Files, script: string): Promise<string> {
  const folder = mkdtempSync(join(PACKAGE_FOLDER, 'build', 'moved-'));
  const compilerOptions: ts.CompilerOptions = {
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.ES2022,
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
  };
  try {
    for (const [name, text] of Object.entries(files)) {
      if (!name.endsWith('.ts')) continue;
      const path = join(folder, name.replace(/\.ts$/, '.js'));
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, ts.transpileModule(text, { compilerOptions }).outputText);
    }
    writeFileSync(join(folder, 'script.mjs'), script);
    return (await promisify(execFile)(process.execPath, [join(folder, 'script.mjs')])).stdout;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
