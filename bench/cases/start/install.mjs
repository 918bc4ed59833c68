/** What is installed: a package and what it depends on, without the peers that an app has anyway. */
import { existsSync } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { table, whole } from '../../report/format.mjs';

const MODULES = fileURLToPath(new URL('../../node_modules', import.meta.url));

const CONTENDERS = {
  'nestjs-sluice': ['nestjs-sluice'],
  '@nestjs/throttler with its Redis storage': ['@nestjs/throttler', '@nest-lab/throttler-storage-redis'],
  'rate-limiter-flexible': ['rate-limiter-flexible'],
};

async function sizeOf(folder) {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => !path.slice(folder.length).includes('/node_modules/'));
  const sizes = await Promise.all(files.map(async (path) => (await stat(path)).size));
  return { files: files.length, bytes: sizes.reduce((sum, each) => sum + each, 0) };
}

/** The folder of a package as Node finds it from another folder. */
function find(name, from) {
  const folder = join(from, 'node_modules', name);
  if (existsSync(folder)) return folder;
  if (dirname(from) === from) throw new Error(`${name} is not installed`);
  return find(name, dirname(from));
}

/** Adds the folders of all dependencies. */
async function addDependencies(folder, folders) {
  const { dependencies = {} } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  for (const name of Object.keys(dependencies)) {
    const found = find(name, folder);
    if (folders.has(found)) continue;
    folders.add(found);
    await addDependencies(found, folders);
  }
}

const sum = (all, field) => all.reduce((total, each) => total + each[field], 0);

async function measure({ tarballBytes }) {
  const rows = [];
  for (const [name, packages] of Object.entries(CONTENDERS)) {
    const own = packages.map((each) => join(MODULES, each));
    const folders = new Set(own);
    for (const folder of own) await addDependencies(folder, folders);
    for (const folder of own) folders.delete(folder);
    const sizes = await Promise.all(own.map(sizeOf));
    const below = await Promise.all([...folders].map(sizeOf));
    rows.push({
      name,
      bytes: sum(sizes, 'bytes'),
      files: sum(sizes, 'files'),
      dependencies: folders.size,
      dependencyBytes: sum(below, 'bytes'),
    });
  }
  return { rows, tarballBytes };
}

const megabytes = (bytes) => `${(bytes / 1e6).toFixed(2)} MB`;

function section({ rows, tarballBytes }, { goalsOf }) {
  return [
    '## Install',
    `The bytes of files, without peers. Our tarball has ${megabytes(tarballBytes)}.`,
    table(
      ['', 'own bytes', 'own files', 'dependencies', 'their bytes'],
      rows.map(({ name, bytes, files, dependencies, dependencyBytes }) => [
        name,
        megabytes(bytes),
        whole(files),
        dependencies,
        megabytes(dependencyBytes),
      ]),
    ),
    ...goalsOf('install'),
  ];
}

export const install = { name: 'install', measure, section };
