/** How the sources differ from what is bundled. */
import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { brotliCompressSync } from 'node:zlib';
import { transform } from 'esbuild';
import { CORE, ROOT, sourceOf, TARGET } from './manifest.mjs';

/** npm compresses within 32 kB: what both formats have alike costs once if it is in files that are smaller. */
const PIECE = 30_000;
const TEXT = /"[^"]{5000,}"/g;
const SCRIPT = /decisionScript = \(\) => (".*");/;
/** Files with long texts, as they are bundled, by the names of their pieces: `page-1`, `page-2`, `script-1` ... */
const LONG = { page: inPieces('page', readBuilt('console/page.generated.js')), script: scriptInPieces() };
/** The texts of all pieces by their names. */
export const PIECES = new Map(Object.values(LONG).flatMap(({ pieces }) => pieces));

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
      contents: `export * from './${sourceOf(path)}.js';\nimport 'core';`,
      resolveDir: ROOT,
    }));
    // So does running an app of its own next to others, serving a console (shared with that entry point), counting in regions,
    // following a policy, explaining limits, and keeping overrides on Redis.
    for (const [filter, path] of [
      [/\/in-regions\.js$/, 'cli/app/in-regions'],
      [/\/observer-app\.js$/, 'cli/console/observer-app'],
      [/\/policies\.js$/, 'app/policy/policies'],
      [/\/explainer\.js$/, 'nest/explain/explainer'],
      [/\/redis\.override-store\.js$/, 'app/overrides/redis.override-store'],
      [/\/region\.store\.js$/, 'storage/features/regions/region.store'],
    ]) {
      // After a file has moved, the core would fall apart.
      if (!existsSync(join(ROOT, `lib/${path}.ts`)))
        throw new Error(`bundle/plugins.mjs names lib/${path}.ts, which doesn't exist`);
      onResolve({ filter }, ({ kind }) => (kind === 'dynamic-import' ? { path, namespace: 'entry' } : undefined));
    }
    // The program has a list of routes of its own: one shared with the helpers for tests would be one more file of theirs.
    onResolve({ filter: /\/route-list\.js$/ }, ({ kind, path, resolveDir }) =>
      kind === 'dynamic-import' ? { path: join(resolveDir, path), namespace: 'copy' } : undefined,
    );
    onLoad({ filter: /./, namespace: 'copy' }, ({ path }) => ({
      contents: `${readFileSync(path, 'utf8')}\nimport 'core';`,
      resolveDir: dirname(path),
    }));
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

/** The page of the console and the script lie in files of their own, for the sake of what npm compresses (see `PIECE`). */
export const longTextsInPieces = {
  name: 'long-texts-in-pieces',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^piece:/ }, ({ path }) => ({ path, namespace: 'piece' }));
    onLoad({ filter: /./, namespace: 'piece' }, ({ path }) => ({
      contents: `export const text = '${PIECES.get(path.slice('piece:'.length))}';`,
    }));
    onLoad({ filter: /[\\/](?:page|script)\.generated\.js$/ }, ({ path }) => ({
      contents: LONG[basename(path, '.generated.js')].contents,
    }));
  },
};

/** A file, its long texts imported in pieces. These texts have no quotation marks and no escapes. */
function inPieces(name, code) {
  const pieces = [];
  const imports = [];
  const contents = code.replaceAll(TEXT, (text) => {
    const locals = text
      .slice(1, -1)
      .match(new RegExp(`.{1,${PIECE}}`, 'g'))
      .map((piece) => {
        const number = pieces.push([`${name}-${pieces.length + 1}`, piece]);
        imports.push(`import { text as piece${number} } from 'piece:${name}-${number}';\n`);
        return `piece${number}`;
      });
    return locals.join(' + ');
  });
  return { pieces, contents: imports.join('') + contents };
}

/** The script is compressed, and expanded once for all stores on Redis. Few apps have Redis and no HTTP, which loads zlib anyway. */
function scriptInPieces() {
  const expanded = readBuilt('storage/stores/redis/script.generated.js').replace(SCRIPT, (_, text) => {
    const base64 = brotliCompressSync(JSON.parse(text)).toString('base64');
    return `decisionScript = () => script ??=
  process.getBuiltinModule('node:zlib').brotliDecompressSync(Buffer.from("${base64}", 'base64')).toString();
let script;`;
  });
  return inPieces('script', expanded);
}

function readBuilt(path) {
  return readFileSync(join(ROOT, 'build', path), 'utf8');
}
