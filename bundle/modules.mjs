/** Bundles the modules of build/, and turns them into each format. */
import { basename, join, posix, relative, sep } from 'node:path';
import { minify } from '@swc/core';
import { build, transform } from 'esbuild';
import tokens from 'js-tokens';
import { CLIENT, CORE, ENTRIES, INSTALLED, PROGRAM, ROOT, sourceOf, TARGET } from './manifest.mjs';
import { coreInOneFile, longTextsInPieces, namesOfStores, PIECES, shortPackages } from './plugins.mjs';

/** Locals get short names. Functions and classes keep theirs, which stack traces and messages show. */
const SHORT_LOCALS = {
  compress: false,
  mangle: { topLevel: false, keepClassNames: true, keepFnNames: true },
};
/** Without indentation the two formats are small enough to carry. */
const COMPACT = { ...TARGET, minifyWhitespace: true, minifySyntax: true };
/** Lines stay short enough to be shown with an error. */
const LINE_LENGTH = 160;
/** After these, a line break never changes what code means. */
const BREAKS = new Set([';', ',', '{']);

/** The modules by their paths, each with its text and the paths that it imports, and the packages that are in them. */
export async function bundledModules() {
  const { outputFiles, metafile } = await build({
    ...TARGET,
    absWorkingDir: ROOT,
    entryPoints: [
      ...ENTRIES.filter((entry) => entry !== CLIENT).map((entry) => ({
        in: entry === CORE ? 'core' : `entry:${entry}`,
        out: entry,
      })),
      { in: `build/${PROGRAM}.js`, out: PROGRAM },
      ...[...PIECES.keys()].map((name) => ({ in: `piece:${name}`, out: `pieces/${name}` })),
    ],
    outdir: 'dist',
    write: false,
    metafile: true,
    bundle: true,
    splitting: true,
    format: 'esm',
    // The ES modules of packages, of which only what is used is taken.
    conditions: ['import', 'module'],
    mainFields: ['module', 'main'],
    external: INSTALLED.flatMap((name) => [name, `${name}/*`]),
    chunkNames: 'shared/[name]-[hash]',
    plugins: [coreInOneFile, shortPackages, namesOfStores, longTextsInPieces],
    logLevel: 'warning',
  });
  const names = sharedNames(metafile.outputs);
  const renamed = (text) => text.replaceAll(/[\w.-]+-[A-Z\d]{8}\.js\b/g, (name) => names.get(name) ?? name);
  const outputs = outputFiles.map(({ path, text }) => {
    const output = relative(join(ROOT, 'dist'), path).replaceAll(sep, '/');
    const imports = metafile.outputs[`dist/${output}`].imports.filter(({ external }) => !external);
    return [
      renamed(output),
      { text: renamed(text), imports: imports.map((one) => renamed(posix.relative('dist', one.path))) },
    ];
  });
  outputs.push([`${CLIENT}.js`, { text: await clientModule(), imports: [] }]);
  const packages = Object.keys(metafile.inputs).flatMap((path) => packageOf(path) ?? []);
  return { modules: new Map(outputs), bundled: new Set(packages) };
}

/** Browsers load one file, and no other entry point loads one more because it shares a file with the client. */
async function clientModule() {
  const { outputFiles } = await build({
    ...TARGET,
    absWorkingDir: ROOT,
    entryPoints: [`${sourceOf(CLIENT)}.js`],
    write: false,
    bundle: true,
    platform: 'browser',
    format: 'esm',
    logLevel: 'warning',
  });
  return outputFiles[0].text;
}

/** Names of shared files for stack traces: a command, or the folder that most of a file is from. */
function sharedNames(outputs) {
  const names = new Map();
  const taken = new Set();
  for (const [path, { entryPoint, inputs }] of Object.entries(outputs)) {
    if (posix.dirname(path) !== 'dist/shared') continue;
    const name = entryPoint === undefined ? folderOf(inputs) : basename(entryPoint, '.js');
    let unique = name;
    for (let i = 2; taken.has(unique); i++) unique = `${name}-${i}`;
    taken.add(unique);
    names.set(posix.basename(path), `${unique}.js`);
  }
  return names;
}

function folderOf(inputs) {
  const sizes = new Map();
  for (const [path, { bytesInOutput }] of Object.entries(inputs)) {
    if (path === 'build/nest/rate-limit.module.js') return 'core';
    const folder = /^build\/(?:(?:engine|storage|app|integrations)\/)?([^/]+)\//.exec(path)?.[1];
    const piece = /piece:([a-z]+)-\d+$/.exec(path)?.[1];
    if (piece !== undefined) return piece;
    if (folder !== undefined) sizes.set(folder, (sizes.get(folder) ?? 0) + bytesInOutput);
  }
  return [...sizes].toSorted(([, a], [, b]) => b - a)[0]?.[0] ?? 'helpers';
}

/** The text of a module in a format. */
export async function compact(text, options) {
  // By its name it is an ES module of Node: a default import is all that a CommonJS package exports.
  const { code } = await transform(text, { ...COMPACT, ...options, sourcefile: 'module.mjs' });
  // Last, because esbuild lengthens names that occur in two nested scopes.
  const short = await minify(withClassNames(code), { ...SHORT_LOCALS, module: options.format === 'esm' });
  return inLines(short.code);
}

/** Breaks code into lines, and shortens the names that esbuild makes for the imports of a CommonJS module. */
function inLines(code) {
  const imports = new Map();
  let lines = '';
  let length = 0;
  for (const { type, value } of tokens(code)) {
    const isImport = type === 'IdentifierName' && /^import_\w+$/.test(value);
    if (isImport && !imports.has(value)) imports.set(value, `$${imports.size}`);
    const text = isImport ? imports.get(value) : value;
    lines += text;
    length = text.includes('\n') ? text.length - text.lastIndexOf('\n') - 1 : length + text.length;
    if (length < LINE_LENGTH || !BREAKS.has(value)) continue;
    lines += '\n';
    length = 0;
  }
  return lines;
}

/** The bundler renames classes that have decorators or refer to themselves: `X=class X2`, `X=class _X`. Users read their names. */
function withClassNames(code) {
  const renamed = [...code.matchAll(/\b(\w+)=(?:\w+=)?class (_\1|\1\d+)\b/g)];
  const names = new Map(renamed.map(([, name, inner]) => [inner, name]));
  return code.replaceAll(/\b\w+\b/g, (word) => names.get(word) ?? word);
}

function packageOf(path) {
  return /(?:^|\/)node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1];
}
