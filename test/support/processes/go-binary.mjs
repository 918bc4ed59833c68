import { findOnPath, install } from './system-programs.mjs';

const PACKAGES = { 'apt-get': ['golang-go'], apk: ['go'], dnf: ['golang'] };

/** The path of Go: `TEST_GO`, or what is on the PATH, or what the system's package manager installs if that is allowed. */
export function findGo() {
  const found = process.env.TEST_GO ?? findOnPath('go');
  if (found !== undefined) return found;
  install('Go', PACKAGES);
  return findOnPath('go');
}
