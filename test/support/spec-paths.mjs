import { existsSync, readdirSync } from 'node:fs';

const ROOT = new URL('../../', import.meta.url);

/**
 * The paths of specs, from the root of the repository, by their folders and names; `'*'` stands for all specs of a folder. Throws if
 * one of them is not there.
 */
export function specPaths(namesByFolder) {
  const paths = Object.entries(namesByFolder).flatMap(([folder, names]) =>
    names === '*' ? specsIn(folder) : names.map((name) => `test/${folder}/${name}.spec.ts`),
  );
  const missing = paths.filter((path) => !existsSync(new URL(path, ROOT)));
  if (missing.length > 0) throw new Error(`These specs are listed, and not there: ${missing.join(', ')}`);
  return paths;
}

function specsIn(folder) {
  const files = readdirSync(new URL(`test/${folder}/`, ROOT)).filter((file) => file.endsWith('.spec.ts'));
  return files.toSorted().map((file) => `test/${folder}/${file}`);
}
