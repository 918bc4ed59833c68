import { join } from 'node:path';

/** What `npm pack` is given to build the package anew and to tell what it has packed, without what its scripts write. */
export function packArguments(destination) {
  return ['pack', '--json', '--foreground-scripts=false', '--pack-destination', destination];
}

/** What it has packed, by what it told. */
export function packedPackage(told, destination) {
  const [packed] = Object.values(JSON.parse(told));
  if (packed === undefined) throw new Error(`npm pack answered ${told}`);
  return { tarball: join(destination, packed.filename), paths: packed.files.map(({ path }) => path) };
}
