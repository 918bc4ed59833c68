import Module from 'node:module';
import { join } from 'node:path';
import { PACKAGE_FOLDER } from '../processes/npm.js';

const LIB = join(PACKAGE_FOLDER, 'lib/');

/** Loads files of `lib/` again, as an app does that gets the package as ES modules and by `require`. */
export function anotherCopy<T extends object[]>(...files: string[]): T {
  const cache = (Module as unknown as Record<'_cache', Record<string, unknown>>)['_cache'];
  const ours = Object.entries(cache).filter(([path]) => path.startsWith(LIB));
  const forget = () => {
    for (const path of Object.keys(cache)) if (path.startsWith(LIB)) delete cache[path];
  };
  const load = Module.createRequire(join(LIB, 'index.ts'));
  forget();
  try {
    return files.map((file) => load(`./${file}`) as object) as T;
  } finally {
    forget();
    Object.assign(cache, Object.fromEntries(ours));
  }
}
