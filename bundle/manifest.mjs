/** What the package's manifest says to the bundler. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('..', import.meta.url));
export const MANIFEST = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
/** The entry points, by their files without an ending, such as `testing/index`. */
export const ENTRIES = Object.values(MANIFEST.exports).flatMap(
  (entry) => /^\.\/dist\/(.*)\.js$/.exec(entry.import)?.[1] ?? [],
);
/** The compiled module of an entry point, without an ending: `graphql/index` is `build/integrations/graphql/index`. */
export const sourceOf = (entry) => {
  const districts = ['', 'integrations/', 'testing/'].map((district) => `build/${district}${entry}`);
  return districts.find((path) => existsSync(join(ROOT, `${path}.js`)));
};
export const CORE = 'index';
/** The entry point for browsers: one file, without the core. */
export const CLIENT = 'client/index';
export const PROGRAM = 'cli/main';
export const INSTALLED = Object.keys({ ...MANIFEST.dependencies, ...MANIFEST.peerDependencies });
export const OPTIONAL = new Set(Object.keys(MANIFEST.peerDependenciesMeta));
/** What the code runs on. */
export const TARGET = { target: 'node20.19', platform: 'node', legalComments: 'none' };
