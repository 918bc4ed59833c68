/** How the sources differ from what is bundled. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { transform } from 'esbuild';
import { CORE, ROOT, TARGET } from './manifest.mjs';

/** npm compresses within 32 kB: what both formats have alike costs once if it is in files that are smaller. */
const PIECE = 30_000;
const TEXT = /"[^"]{10000,}"/g;
export const PIECES = [...readFileSync(join(ROOT, 'build/console/page.generated.js'), 'utf8').matchAll(TEXT)].flatMap(
  ([text]) => piecesOf(text),
);

/**
 * Whoever loads an entry point loads the core, too. Each is bundled as if it said so. Otherwise the core would fall into a file for
 * each choice of entry points that use some of it.
 */
export const coreInOneFile = {
  name: 'core-in-one-file',
  setup({ onResolve, onLoad }) {
    const core = { path: join(ROOT, `build/${CORE}.js`), sideEffects: true };
    onResolve({ filter: /^core$/ }, () => core);
    onResolve({ filter: /^entry:/ }, ({ path }) => ({ path: path.slice('entry:'.length), namespace: 'entry' }));
    onLoad({ filter: /./, namespace: 'entry' }, ({ path }) => ({
      contents: `export * from './build/${path}.js';\nimport 'core';`,
      resolveDir: ROOT,
    }));
    // The program loads it to run an app.
    onResolve({ filter: /\/rate-limit\.module\.js$/ }, ({ kind }) => (kind === 'dynamic-import' ? core : undefined));
  },
};

/** The local names of packages are short: no one looks for those. */
export const shortPackages = {
  name: 'short-packages',
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]node_modules[\\/].*\.m?js$/ }, async ({ path }) => {
      const { code } = await transform(readFileSync(path, 'utf8'), { ...TARGET, minify: true });
      return { contents: code };
    });
  },
};

/** Public classes with the names of those that they extend: in one file, they would be renamed. */
export const namesOfStores = {
  name: 'names-of-stores',
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]own-stores\.js$/ }, async ({ path }) => {
      const { code } = await transform(readFileSync(path, 'utf8'), { ...TARGET, keepNames: true });
      return { contents: code };
    });
  },
};

/** The page of the console lies in files of its own, for the sake of what npm compresses (see `PIECE`). */
export const pageInPieces = {
  name: 'page-in-pieces',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^piece:/ }, ({ path }) => ({ path, namespace: 'piece' }));
    onLoad({ filter: /./, namespace: 'piece' }, ({ path }) => ({
      contents: `export const text = ${JSON.stringify(PIECES[Number(path.slice('piece:'.length))])};`,
    }));
    onLoad({ filter: /[\\/]page\.generated\.js$/ }, ({ path }) => {
      let number = 0;
      const imports = [];
      const contents = readFileSync(path, 'utf8').replaceAll(TEXT, (text) => {
        const names = piecesOf(text).map(() => `piece${number++}`);
        imports.push(
          ...names.map((name) => `import { text as ${name} } from 'piece:${name.slice('piece'.length)}';\n`),
        );
        return names.join(' + ');
      });
      return { contents: imports.join('') + contents };
    });
  },
};

/** The pieces of a text in quotation marks that has none, nor escapes. */
function piecesOf(text) {
  return text.slice(1, -1).match(new RegExp(`.{1,${PIECE}}`, 'g'));
}
