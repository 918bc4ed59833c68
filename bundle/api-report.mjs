/**
 * Reports the public names, signatures and defaults of each entry point, from the declarations in dist/. Reports hold no descriptions: they
 * change when what users compile against changes. `npm run build:api` writes them; `test/package/api-report.spec.ts` compares them.
 */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import ts from 'typescript';
import { ENTRIES, MANIFEST, ROOT } from './manifest.mjs';

export const REPORTS = join(ROOT, 'test/package/api');
/** The tags of comments that are part of what is promised. */
const KEPT_TAGS = new Set(['default', 'deprecated']);

/** The texts of all reports, by their file names, of the declarations in a folder. */
export function apiReports(folder = join(ROOT, 'dist')) {
  const files = ENTRIES.map((entry) => join(folder, `${entry}.d.ts`));
  const program = ts.createProgram(files, OPTIONS, relativeOnly());
  const checker = program.getTypeChecker();
  /** In which report each declaration stands. */
  const reported = new Map();
  const entries = ENTRIES.map((entry, i) => {
    const name = entry === 'index' ? MANIFEST.name : `${MANIFEST.name}/${entry.replace(/\/index$/, '')}`;
    const source = program.getSourceFile(files[i]);
    const exported = checker.getExportsOfModule(checker.getSymbolAtLocation(source)).map((symbol) => ({
      name: symbol.name,
      symbol: symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol,
    }));
    for (const { symbol } of exported) if (!reported.has(symbol)) reported.set(symbol, name);
    return { name, exported };
  });
  return new Map(
    entries.map(({ name, exported }) => [
      `${name.replace('/', '.')}.api.md`,
      reportOf(name, exported, reported, checker),
    ]),
  );
}

const OPTIONS = {
  noLib: true,
  types: [],
  target: ts.ScriptTarget.Latest,
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
};

/** Resolves no packages: reports name their types and do not look into them. */
function relativeOnly() {
  const host = ts.createCompilerHost(OPTIONS);
  host.resolveModuleNameLiterals = (names, from) =>
    names.map(({ text }) => ({
      resolvedModule: text.startsWith('.')
        ? { resolvedFileName: join(from, '..', text.replace(/\.js$/, '.d.ts')), extension: ts.Extension.Dts }
        : undefined,
    }));
  return host;
}

function reportOf(entry, exported, reported, checker) {
  const own = exported.filter(({ symbol }) => reported.get(symbol) === entry);
  const others = exported.filter(({ symbol }) => reported.get(symbol) !== entry);
  const shown = new Set(own.map(({ symbol }) => symbol));
  const reached = new Set();
  // The loop takes in what is added while it runs.
  for (const symbol of shown) {
    for (const used of symbolsUsedBy(symbol, checker)) {
      if (reported.has(used)) continue;
      reported.set(used, entry);
      shown.add(used);
      reached.add(used);
    }
  }
  const sections = [
    `# API of \`${entry}\`\n\nMade by \`npm run build:api\`. Do not edit.\n`,
    code(own.map(({ name, symbol }) => [name, textOf(symbol)])),
    others.length === 0
      ? ''
      : `## From other entry points\n\n${code(
          others.map(({ name, symbol }) => [name, `export { ${name} } from '${reported.get(symbol)}';`]),
        )}`,
    reached.size === 0
      ? ''
      : `## Without a public name\n\nPublic declarations refer to them; each stands in the first report that does.\n\n${code(
          [...reached].map((symbol) => [symbol.name, textOf(symbol)]),
        )}`,
  ];
  return sections.filter((section) => section !== '').join('\n');
}

function code(named) {
  const texts = named.toSorted(([a], [b]) => (a < b ? -1 : Number(a > b))).map(([, text]) => text);
  return `\`\`\`ts\n${texts.join('\n\n')}\n\`\`\`\n`;
}

/** The declarations in dist/ that those of a symbol name, each once. */
function symbolsUsedBy(symbol, checker) {
  const used = new Set();
  const visit = (node) => {
    if (isHidden(node)) return;
    if (ts.isIdentifier(node)) {
      const named = checker.getSymbolAtLocation(node);
      const meant = named && named.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(named) : named;
      if (meant?.declarations?.some((each) => ts.isSourceFile(statementOf(each).parent) && isTopLevel(each))) {
        used.add(meant);
      }
    }
    ts.forEachChild(node, visit);
  };
  for (const declaration of symbol.declarations ?? []) visit(statementOf(declaration));
  used.delete(symbol);
  return used;
}

function textOf(symbol) {
  return (symbol.declarations ?? []).map((declaration) => shownText(statementOf(declaration))).join('\n');
}

/** A variable's statement, which has its keyword and its comment. */
function statementOf(declaration) {
  return ts.isVariableDeclaration(declaration) ? declaration.parent.parent : declaration;
}

function isTopLevel(declaration) {
  return !ts.isSourceFile(declaration) && ts.isSourceFile(statementOf(declaration).parent);
}

function isHidden(node) {
  return (
    (ts.canHaveModifiers(node) &&
      ts.getModifiers(node)?.some(({ kind }) => kind === ts.SyntaxKind.PrivateKeyword) === true) ||
    (ts.isPropertyDeclaration(node) && ts.isPrivateIdentifier(node.name))
  );
}

/** The text of a declaration with neither descriptions nor private members. */
function shownText(statement) {
  const source = statement.getSourceFile();
  const { text } = source;
  const cuts = [];
  const visit = (node) => {
    if (isHidden(node)) {
      cuts.push({ start: node.getFullStart(), end: node.end, by: '' });
      return;
    }
    for (const comment of node.jsDoc ?? []) cuts.push({ start: comment.pos, end: comment.end, by: keptOf(comment) });
    ts.forEachChild(node, visit);
  };
  visit(statement);
  const start = statement.getStart(source, true);
  let shown = '';
  let at = start;
  for (const cut of cuts.toSorted((a, b) => a.start - b.start)) {
    if (cut.start < at) continue;
    shown += text.slice(at, cut.start) + cut.by;
    at = cut.end;
  }
  shown += text.slice(at, statement.end);
  return shown
    .split('\n')
    .map((line) => line.trimEnd())
    .filter((line) => line !== '')
    .join('\n')
    .trim();
}

function keptOf({ tags = [] }) {
  const kept = tags
    .filter(({ tagName }) => KEPT_TAGS.has(tagName.text))
    .map(({ tagName, comment }) => {
      const words = ts.getTextOfJSDocComment(comment)?.replaceAll(/\s+/g, ' ').trim();
      return `@${tagName.text}${words ? ` ${words}` : ''}`;
    });
  return kept.length === 0 ? '' : `/** ${kept.join(' ')} */`;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const reports = apiReports();
  mkdirSync(REPORTS, { recursive: true });
  for (const name of readdirSync(REPORTS)) if (!reports.has(name)) rmSync(join(REPORTS, name));
  for (const [name, text] of reports) writeFileSync(join(REPORTS, name), text);
}
