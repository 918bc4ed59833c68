// Makes dist/, the code of the package, of what the compiler has written into build/: a file for each entry point, the files that they
// share, and declarations; and all that once more as CommonJS. Packages that are slow to load, or large, are bundled.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, posix, relative, sep } from 'node:path';
import { bundledDeclarations } from './declarations.mjs';
import { ENTRIES, PROGRAM, ROOT } from './manifest.mjs';
import { bundledModules, compact } from './modules.mjs';

const [{ modules, bundled }, declarations] = await Promise.all([bundledModules(), bundledDeclarations()]);
const required = reachable(ENTRIES.map((entry) => `${entry}.js`));
const loaded = reachable([...required, `${PROGRAM}.js`]);
const files = new Map([['licenses.txt', licences(bundled)]]);
for (const [path, text] of declarations) files.set(path, text).set(`cjs/${path}`, text);
await Promise.all(
  [...loaded].map(async (path) => {
    const { text } = modules.get(path);
    files.set(path, await compact(text, { format: 'esm' }));
    // The program is an ES module only. Jest in CommonJS knows no `import()`.
    const commonjs = { format: 'cjs', supported: { 'dynamic-import': false } };
    if (required.has(path)) files.set(`cjs/${path}`, await compact(text, commonjs));
  }),
);
// Written last: tests wait for it.
files.set('cjs/package.json', '{ "type": "commonjs" }\n');
write(join(ROOT, 'dist'));

/** The modules that are loaded with some, these included. */
function reachable(paths, found = new Set()) {
  for (const path of paths) {
    if (found.has(path)) continue;
    found.add(path);
    reachable(modules.get(path).imports, found);
  }
  return found;
}

/** The licences of packages that are bundled, which ask to go with them. */
function licences(packages) {
  const texts = [...packages]
    .toSorted((a, b) => (a < b ? -1 : 1))
    .map((name) => {
      const folder = join(ROOT, 'node_modules', name);
      const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
      const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
      return `${name} ${version}\n\n${readFileSync(join(folder, file), 'utf8').trim()}\n`;
    });
  const rule = `\n${'-'.repeat(80)}\n\n`;
  return `This package contains code of these packages.\n${rule}${texts.join(rule)}`;
}

/** Writes all files, then deletes what is left over: whoever loads them meanwhile misses none. */
function write(folder) {
  for (const [path, text] of files) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  const folders = new Set([...files.keys()].flatMap((path) => ancestors(path)));
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    const name = relative(folder, path).replaceAll(sep, '/');
    if (!files.has(name) && !folders.has(name)) rmSync(path, { recursive: true, force: true });
  }
}

function ancestors(path) {
  const folder = posix.dirname(path);
  return folder === '.' ? [] : [folder, ...ancestors(folder)];
}
