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
    const { importClause } = declaration;
    const bindings = importClause?.namedBindings;
    if (importClause === undefined || (bindings !== undefined && !ts.isNamedImports(bindings))) continue;
    const elements = bindings?.elements ?? [];
    // The default import and the named ones.
    const locals = [importClause, ...elements].flatMap(({ name }) => name?.text ?? []);
    const added = bindings === undefined ? [] : namesFor(declaration, bindings, missing, usedNow);
    const removesAll = added.length === 0 && locals.length > 0 && locals.every(isGone);
    const changes = added.length > 0 || locals.some(isGone);
    if (removesAll) {
      place ??= declaration.getStart(now.ast);
      const end = /^[ \t]*\n?/.exec(body.slice(declaration.end))![0].length;
      edits.replace(declaration.getStart(now.ast), declaration.end + end, '');
    } else if (bindings !== undefined && changes) {
      const kept = elements.filter(({ name }) => !isGone(name.text)).map((element) => now.before(element));
      edits.replace(bindings.getStart(now.ast), bindings.end, namedImports(now.before(bindings), [...kept, ...added]));
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

function namesOf(source: Source): Set<string> {
  return new Set(source.uses().map(({ text }) => text));
}

function namesFor(
  { importClause, moduleSpecifier }: TS.ImportDeclaration,
  { elements }: TS.NamedImports,
  missing: Map<string, Set<string>>,
  used: ReadonlySet<string>,
): string[] {
  const module = (moduleSpecifier as TS.StringLiteral).text;
  const wanted = missing.get(module);
  if (wanted === undefined) return [];
  const have = new Set(elements.map(({ name }) => name.text));
  for (const name of wanted) if (have.has(bareName(name))) wanted.delete(name);
  if (importClause!.getText().startsWith('type ')) return [];
  missing.delete(module);
  return [...wanted].filter((name) => used.has(bareName(name)));
}

/** The names of an import, in the layout that it had before. */
function namedImports(before: string, names: readonly string[]): string {
  const lead = /^\{\s*\n([ \t]*)/.exec(before)?.[1];
  if (lead !== undefined && names.join(', ').length > 60)
    return `{\n${names.map((name) => `${lead}${name},\n`).join('')}}`;
  return `{ ${names.join(', ')} }`;
}
