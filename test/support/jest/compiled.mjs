import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SWC_OPTIONS } from './swc-options.mjs';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const FOLDER = `${ROOT}node_modules/.cache/compiled-specs/`;
const { version } = JSON.parse(readFileSync(`${ROOT}node_modules/@swc/core/package.json`, 'utf8'));
/** What the result depends on besides the text of a file. Copies of the repository that share its packages share what is kept, too. */
const SETTINGS = JSON.stringify([version, SWC_OPTIONS]);
const HASH_LENGTH = 40;

/** The JavaScript of a TypeScript file, with its source map. What was compiled before is kept in a file for each, by a hash of its text. */
export async function compiled(url) {
  const filename = fileURLToPath(url);
  // All that is read is small, and whoever imports it waits: each promise of a read would cost more than the read.
  const text = readFileSync(filename, 'utf8');
  const hash = createHash('sha1').update(SETTINGS).update(text).digest('hex');
  const kept = FOLDER + filename.slice(ROOT.length).replaceAll(/[\\/]/g, '+');
  const before = read(kept);
  if (before.startsWith(hash)) return before.slice(HASH_LENGTH);
  // Only now: it takes a while to load.
  const { transform } = await import('@swc/core');
  const { code } = await transform(text, {
    ...SWC_OPTIONS,
    filename,
    sourceFileName: basename(filename),
    sourceMaps: 'inline',
  });
  keep(kept, hash + code);
  return code;
}

function read(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** Other processes that write or read the same file at the same time never find half of it. */
function keep(path, text) {
  mkdirSync(FOLDER, { recursive: true });
  const written = `${path}.${process.pid}`;
  writeFileSync(written, text);
  renameSync(written, path);
}
