import { readdirSync } from 'node:fs';
import { cp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join, normalize } from 'node:path';
import ts from 'typescript';
import { PACKAGE_FOLDER } from './npm.js';

const COPIED = [
  'lib',
  'lua',
  'test',
  'package.json',
  'jest.config.mjs',
  'tsconfig.base.json',
  'tsconfig.build.json',
  'tsconfig.json',
];
/** Where each feature has a folder, and each variant of algorithms. */
const FOLDERS = ['lib/storage/features', 'lib/engine/algorithms'];
/** The only files outside a feature's folder that may name it: the lists, the classes with the methods of all, and the public surface. */
const NAMING = [
  'lib/engine/algorithms/index.ts',
  // The types of options.
  'lib/engine/algorithms/budget.ts',
  'lib/engine/algorithms/calendar-window.ts',
  'lib/engine/algorithms/gcra.ts',
  'lib/engine/algorithms/token-bucket.ts',
  'lib/storage/features/beside-apps.ts',
  'lib/storage/features/index.ts',
  'lib/storage/features/options.ts',
  'lib/storage/features/own-stores.ts',
  'lib/app/limiter/limiter.ts',
  'lib/index.ts',
];

/** The folders of all features, and of variants of algorithms. */
export function featureFolders(): string[] {
  return FOLDERS.flatMap((folder) => {
    const entries = readdirSync(join(PACKAGE_FOLDER, folder), { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => `${folder}/${name}`);
  });
}

/** Copies what the library is made of, and its specs, into a folder. */
export async function copyPackage(folder: string): Promise<void> {
  for (const name of COPIED) await cp(join(PACKAGE_FOLDER, name), join(folder, name), { recursive: true });
  await symlink(join(PACKAGE_FOLDER, 'node_modules'), join(folder, 'node_modules'));
}

/** Puts all features into a copy again. */
export async function putBack(folder: string): Promise<void> {
  for (const name of [...FOLDERS, 'lua/features', ...NAMING]) {
    await cp(join(PACKAGE_FOLDER, name), join(folder, name), { recursive: true });
  }
}

/** Leaves a feature, given by its folder, out of a copy: that folder, its fragment, and what the files that may name it have of it. */
export async function leaveOut(feature: string, folder: string): Promise<void> {
  await rm(join(folder, feature), { recursive: true });
  await rm(join(folder, 'lua/features', `${basename(feature)}.lua`), { force: true });
  for (const file of NAMING) {
    const path = join(folder, file);
    await writeFile(path, withoutImportsOf(feature, file, await readFile(path, 'utf8')));
  }
}

/** A source without imports and exports of a folder, and without the elements, members and type operators that use them. */
function withoutImportsOf(folder: string, file: string, text: string): string {
  const source = ts.createSourceFile(basename(file), text, ts.ScriptTarget.Latest, true);
  const gone = new Set<string>();
  /** Texts in the place of others, by where these begin and end. */
  const edits: { start: number; end: number; by: string }[] = [];
  const replace = (node: ts.Node, by = '') => edits.push({ start: node.getFullStart(), end: node.end, by });
  const isOf = (specifier: ts.Expression | undefined) =>
    specifier !== undefined &&
    ts.isStringLiteral(specifier) &&
    normalize(join(dirname(file), specifier.text)).startsWith(`${folder}/`);

  for (const statement of source.statements) {
    if (ts.isExportDeclaration(statement) && isOf(statement.moduleSpecifier)) replace(statement);
    if (!ts.isImportDeclaration(statement) || !isOf(statement.moduleSpecifier)) continue;
    replace(statement);
    const bindings = statement.importClause?.namedBindings;
    if (bindings !== undefined && ts.isNamedImports(bindings))
      for (const { name } of bindings.elements) gone.add(name.text);
  }
  const uses = (node: ts.Node): boolean =>
    (ts.isIdentifier(node) && gone.has(node.text)) || (ts.forEachChild(node, uses) ?? false);
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return;
    if (ts.isClassElement(node) && uses(node)) return void replace(node);
    if (ts.isHeritageClause(node) && uses(node)) {
      const kept = node.types.filter((type) => !uses(type)).map((type) => type.getText());
      return void replace(node, kept.length === 0 ? '' : ` extends ${kept.join(', ')}`);
    }
    if (ts.isTypeReferenceNode(node) && ts.isIdentifier(node.typeName) && gone.has(node.typeName.text)) {
      return void replace(node, ` ${node.typeArguments?.[0]?.getText() ?? 'unknown'}`);
    }
    if (ts.isArrayLiteralExpression(node)) {
      const kept = node.elements.filter((element) => !uses(element));
      if (kept.length < node.elements.length) {
        return void replace(node, ` [${kept.map((element) => element.getText()).join(', ')}]`);
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return edits
    .toSorted((one, other) => other.start - one.start)
    .reduce((result, { start, end, by }) => result.slice(0, start) + by + result.slice(end), text);
}
