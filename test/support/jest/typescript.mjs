/** Loads TypeScript in the thread of the specs, as CommonJS: Node runs hooks for its ES modules in a thread of their own. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import Module, { createRequire } from 'node:module';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { withDeclaredKeys } from './declared-keys.mjs';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const CACHE = join(ROOT, 'node_modules/.cache/compiled-specs');
const OPTIONS = {
  jsc: {
    target: 'es2023',
    parser: { syntax: 'typescript', decorators: true },
    transform: { legacyDecorator: true, decoratorMetadata: true, useDefineForClassFields: true },
    keepClassNames: true,
  },
  module: { type: 'commonjs' },
  sourceMaps: 'inline',
  configFile: false,
  swcrc: false,
};
const { version } = JSON.parse(readFileSync(join(ROOT, 'node_modules/@swc/core/package.json'), 'utf8'));
/** The other input of compiled code, next to the text of its file. Copies of the repository with the same packages share the cache. */
const SETTINGS = JSON.stringify([version, OPTIONS]);
const HASH_LENGTH = 40;

const require = createRequire(import.meta.url);
const { _load: load, _resolveFilename: resolveFilename } = Module;

/** The exports of `@jest/globals` for the current spec. */
let globals;

export function provideGlobals(given) {
  globals = given;
}

Module['_load'] = function (request, ...rest) {
  return request === '@jest/globals' ? globals : load.call(this, request, ...rest);
};

Module['_resolveFilename'] = function (request, parent, ...rest) {
  if (request.startsWith('.') && request.endsWith('.js') && parent?.filename?.endsWith('.ts')) {
    const file = resolve(dirname(parent.filename), request.replace(/js$/, 'ts'));
    if (existsSync(file)) return file;
  }
  // `import()` of a URL compiles to this.
  const path = request.startsWith('file:') ? fileURLToPath(request) : request;
  return resolveFilename.call(this, path, parent, ...rest);
};

Module['_extensions']['.ts'] = (module, filename) =>
  module['_compile'](withDeclaredKeys(filename, compiled(filename)), filename);

/** The JavaScript of a TypeScript file, with its source map: from the cache, if the file has not changed. */
function compiled(filename) {
  const text = readFileSync(filename, 'utf8');
  const hash = createHash('sha1').update(SETTINGS).update(text).digest('hex');
  const kept = join(CACHE, relative('', filename).replaceAll(/[\\/]/g, '+'));
  const before = existsSync(kept) ? readFileSync(kept, 'utf8') : '';
  if (before.startsWith(hash)) return before.slice(HASH_LENGTH);
  // Only now: it takes a while to load.
  const { transformSync } = require('@swc/core');
  const { code } = transformSync(text, { ...OPTIONS, filename, sourceFileName: basename(filename) });
  mkdirSync(CACHE, { recursive: true });
  // Other processes that read the file at the same time never find half of it.
  const written = `${kept}.${process.pid}`;
  writeFileSync(written, hash + code);
  renameSync(written, kept);
  return code;
}

/** Takes the modules of a folder out of the cache of Node, which loads them again when they are next imported. */
export function takeModules(folder) {
  const taken = Object.entries(require.cache).filter(([path]) => path.startsWith(join(ROOT, folder, '/')));
  for (const [path] of taken) delete require.cache[path];
  return Object.fromEntries(taken);
}
