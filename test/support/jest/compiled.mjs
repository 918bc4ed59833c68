import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { SWC_OPTIONS } from './swc-options.mjs';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const FOLDER = `${ROOT}node_modules/.cache/compiled-specs/`;
const { version } = JSON.parse(readFileSync(`${ROOT}node_modules/@swc/core/package.json`, 'utf8'));
/** What the result depends on besides the text of a file and where it is. */
const SETTINGS = JSON.stringify([version, SWC_OPTIONS]);
const HASH_LENGTH = 40;

/** The JavaScript of a TypeScript file, with its source map. What was compiled before is kept in a file for each, by a hash of its text. */
export async function compiled(url) {
  const filename = fileURLToPath(url);
  const text = await readFile(filename, 'utf8');
  const hash = createHash('sha1').update(SETTINGS).update(filename).update(text).digest('hex');
  const kept = FOLDER + filename.slice(ROOT.length).replaceAll(/[\\/]/g, '+');
  const before = await readFile(kept, 'utf8').catch(() => '');
  if (before.startsWith(hash)) return before.slice(HASH_LENGTH);
  // Only now: it takes a while to load.
  const { transform } = await import('@swc/core');
  const { code } = await transform(text, { ...SWC_OPTIONS, filename, sourceMaps: 'inline' });
  await keep(kept, hash + code);
  return code;
}

/** Other processes that write or read the same file at the same time never find half of it. */
async function keep(path, text) {
  mkdirSync(FOLDER, { recursive: true });
  const written = `${path}.${process.pid}`;
  await writeFile(written, text);
  await rename(written, path);
}
