/** `npm run check:package`: what tools say of the package's manifest and types. A tarball may be given; else one is made of the last build. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packArguments, packedPackage } from './support/packed-package.mjs';

const [given] = process.argv.slice(2);
const destination = mkdtempSync(join(tmpdir(), 'sluice-packed-'));
try {
  const tarball = given ?? packed();
  run('publint', ['run', tarball, '--strict']);
  run('attw', [tarball, '--profile', 'strict', '--no-emoji', '--no-color', '--format', 'ascii']);
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

function run(tool, args) {
  execFileSync(join('node_modules/.bin', tool), args, { stdio: 'inherit' });
}
