import type TS from 'typescript';
import { Edits, Source } from './source.js';
import { quoteOf } from './values.js';
import { dirname, relative, sep } from 'node:path';

/** Imports a name from another file of the project. */
export function importOf(source: Source, from: Source, name: string): void {
  if (source.path === from.path || source.imported.has(name)) return;
  const path = relative(dirname(source.path), from.path)
    .replaceAll(sep, '/')
    .replace(/\.[cm]?tsx?$/, '');
  const hasExtensions = /from ['"]\.{1,2}\/[^'"]*\.js['"]/.test(source.text);
  source.want(`${path.startsWith('.') ? path : `./${path}`}${hasExtensions ? '.js' : ''}`, name);
}

/** The text of a file with its edits, and with the imports that the new code needs. */
export function finished(source: Source): string {
  const body = source.edits.render();
  if (body === source.text && source.wanted.size === 0) return source.text;
  const { ts } = source;
  const now = new Source(ts, source.path, source.shown, body);
  const edits = new Edits(body);
  const usedBefore = namesOf(source);
  const helpers = [...source.helpers.values()];
  const usedNow = namesOf(new Source(ts, source.path, source.shown, [body, ...helpers].join('\n')));
  const isGone = (local: string): boolean => usedBefore.has(local) && !usedNow.has(local);
  const declarations = now.ast.statements.filter(ts.isImportDeclaration);
  const missing = new Map([...source.wanted].map(([module, names]) => [module, new Set(names)]));
  let place: number | undefined;
  for (const declaration of declarations) {
    const removed = removedNames(now, declaration, isGone);
    const names = namesFor(now, declaration, missing, usedNow);
    if (removed === 'all' && names.length === 0) {
      place ??= declaration.getStart(now.ast);
      const end = /^[ \t]*\n?/.exec(body.slice(declaration.end))![0].length;
      edits.replace(declaration.getStart(now.ast), declaration.end + end, '');
    } else if (removed !== 'none' || names.length > 0) {
      const text = namedImports(now, declaration, removed === 'all' ? undefined : isGone, names);
      const bindings = declaration.importClause?.namedBindings;
      if (bindings !== undefined) edits.replace(bindings.getStart(now.ast), bindings.end, text);
    }
  }
  const quote = quoteOf(source);
  const semicolon = declarations.length === 0 || body[declarations[0]!.end - 1] === ';' ? ';' : '';
  const lines = [...missing]
    .map(([module, names]) => ({ module, names: [...names].filter((name) => usedNow.has(bareName(name))) }))
    .filter(({ names }) => names.length > 0)
    .map(({ module, names }) => `import { ${sorted(names).join(', ')} } from ${quote}${module}${quote}${semicolon}\n`);
  const last = declarations.at(-1);
  const end = last === undefined ? 0 : Math.min(body.length, last.end + (body[last.end] === '\n' ? 1 : 0));
  edits.insert(place ?? end, lines.join(''));
  edits.insert(end, helpers.map((helper) => `\n${helper}\n`).join(''));
  return edits.render();
}

function bareName(name: string): string {
  return name.replace(/^type /, '');
}

function sorted(names: readonly string[]): string[] {
  return names.toSorted((a, b) => bareName(a).localeCompare(bareName(b)));
}

/** The names that a file uses, including those of helpers to add. */
function namesOf(source: Source): Set<string> {
  const names = new Set<string>();
  source.visit(source.ast, (node) => {
    const { ts } = source;
    if (!ts.isIdentifier(node) || ts.isImportSpecifier(node.parent) || ts.isImportClause(node.parent)) return;
    if (ts.isPropertyAccessExpression(node.parent) && node.parent.name === node) return;
    if (ts.isPropertyAssignment(node.parent) && node.parent.name === node) return;
    names.add(node.text);
  });
  return names;
}

/** The names of an import that are no longer used. */
function removedNames(now: Source, { importClause }: TS.ImportDeclaration, isGone: (local: string) => boolean) {
  const bindings = importClause?.namedBindings;
  if (importClause === undefined) return 'none';
  const locals =
    bindings !== undefined && now.ts.isNamedImports(bindings) ? bindings.elements.map(({ name }) => name.text) : [];
  if (bindings !== undefined && !now.ts.isNamedImports(bindings)) return 'none';
  const all = importClause.name === undefined ? locals : [importClause.name.text, ...locals];
  const gone = all.filter(isGone);
  if (gone.length === 0 || all.length === 0) return 'none';
  return gone.length === all.length ? 'all' : 'some';
}

/** The missing names that an import of a module provides. */
function namesFor(
  now: Source,
  { importClause, moduleSpecifier }: TS.ImportDeclaration,
  missing: Map<string, Set<string>>,
  used: ReadonlySet<string>,
): string[] {
  const module = (moduleSpecifier as TS.StringLiteral).text;
  const bindings = importClause?.namedBindings;
  const wanted = missing.get(module);
  if (wanted === undefined || bindings === undefined || !now.ts.isNamedImports(bindings)) return [];
  const isTypeOnly = importClause?.getText(now.ast).startsWith('type ') === true;
  const have = new Set(bindings.elements.map(({ name }) => name.text));
  for (const name of wanted) if (have.has(bareName(name))) wanted.delete(name);
  if (isTypeOnly) return [];
  missing.delete(module);
  return [...wanted].filter((name) => used.has(bareName(name)));
}

function namedImports(
  now: Source,
  { importClause }: TS.ImportDeclaration,
  isGone: ((local: string) => boolean) | undefined,
  added: readonly string[],
): string {
  const bindings = importClause!.namedBindings as TS.NamedImports;
  const kept = isGone === undefined ? [] : bindings.elements.filter(({ name }) => !isGone(name.text));
  const names = [...kept.map((element) => now.before(element)), ...added];
  const before = now.before(bindings);
  const lead = /^\{\s*\n([ \t]*)/.exec(before)?.[1];
  if (lead !== undefined && names.join(', ').length > 60)
    return `{\n${names.map((name) => `${lead}${name},\n`).join('')}}`;
  return `{ ${names.join(', ')} }`;
}
