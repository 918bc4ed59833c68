/** `npm run check:package`: what tools say of the package's manifest and types. A tarball may be given; else one is made of the last build. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core';
import { packArguments, packedPackage } from './support/processes/packed-package.mjs';

const [given] = process.argv.slice(2);
const destination = mkdtempSync(join(tmpdir(), 'sluice-packed-'));
try {
  const tarball = given ?? packed();
  run('publint', ['run', tarball, '--strict']);
  if (!(await hasRightTypes(tarball))) {
    process.exitCode = 1;
    run('attw', [tarball, '--profile', 'strict', '--no-emoji', '--no-color', '--format', 'ascii']);
  }
} catch (error) {
  // A tool has said what is wrong.
  if (typeof error.status !== 'number') throw error;
  process.exitCode = error.status;
} finally {
  rmSync(destination, { recursive: true, force: true });
}

function packed() {
  const args = [...packArguments(destination), '--ignore-scripts'];
  return packedPackage(execFileSync('npm', args, { encoding: 'utf8' }), destination).tarball;
}

/** By what `attw` goes by, which shows what is wrong. */
async function hasRightTypes(tarball) {
  const files = createPackageFromTarballData(readFileSync(tarball));
  const folders = new Set();
  for (const file of files.listFiles()) {
    for (let folder = dirname(file); !folders.has(folder); folder = dirname(folder)) folders.add(folder);
  }
  // It is asked for so many folders that half of the time would go into looking through all files for each.
  files.directoryExists = (path) => folders.has(path.replace(/(?<=.)\/$/, ''));
  const { types, problems } = await checkPackage(files);
  return types !== false && problems.length === 0;
}

function run(tool, args) {
  execFileSync(join('node_modules/.bin', tool), args, { stdio: 'inherit' });
}
