import { existsSync } from 'node:fs';

const ROOT = new URL('../../', import.meta.url);

/** The paths of specs, from the root of the repository, by their folders and names. Throws if one of them is not there. */
export function specPaths(namesByFolder) {
  const paths = Object.entries(namesByFolder).flatMap(([folder, names]) =>
    names.map((name) => `test/${folder}/${name}.spec.ts`),
  );
  const missing = paths.filter((path) => !existsSync(new URL(path, ROOT)));
  if (missing.length > 0) throw new Error(`These specs are listed, and not there: ${missing.join(', ')}`);
  return paths;
}
