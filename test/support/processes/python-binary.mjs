import { spawnSync } from 'node:child_process';
import { delimiter, join } from 'node:path';
import { install } from './system-programs.mjs';

const PACKAGES = { 'apt-get': ['python3-redis'], apk: ['py3-redis'], dnf: ['python3-redis'] };

const WHAT_TO_INSTALL =
  'The test of another language needs Python with redis-py: install it so that python3 is on the PATH ' +
  '(Debian: apt-get install python3-redis, elsewhere: pip install redis), or set TEST_PYTHON to its path.';

/** The first of all `python3` on the PATH that has redis-py. */
function findPython() {
  const folders = (process.env.PATH ?? '').split(delimiter);
  const programs = process.env.TEST_PYTHON ?? folders.map((folder) => join(folder, 'python3'));
  return [programs].flat().find((program) => spawnSync(program, ['-c', 'import redis']).status === 0);
}

/** The path of a Python with redis-py, installed with the system's package manager if there is none and that is allowed. */
export function ensurePython() {
  const found = findPython();
  if (found !== undefined) return found;
  install('Python with redis-py', PACKAGES);
  const installed = findPython();
  if (installed === undefined) throw new Error(WHAT_TO_INSTALL);
  return installed;
}
