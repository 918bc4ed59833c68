// Bundles the page of the console into lib/console/page.generated.ts, compressed, so that the package needs no file at run time.
// A bundle of the same files is left unchanged.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants } from 'node:zlib';

const LIBRARIES = ['preact', 'uplot'];
const target = new URL('../page.generated.ts', import.meta.url);
const bundled = existsSync(target) ? readFileSync(target, 'utf8') : '';
const head = `// Made from lib/console/page/ by its bundle.mjs. Do not edit. ${hashOfSources()}\n`;
if (bundled.startsWith(head)) process.exit();

// Imported only now, because it takes a while to load.
const { build } = await import('esbuild');

const { outputFiles } = await build({
  entryPoints: ['app.tsx', 'page.css'].map((file) => fileURLToPath(new URL(file, import.meta.url))),
  bundle: true,
  minify: true,
  write: false,
  outdir: 'out',
  format: 'iife',
  // The first versions with `light-dark()`.
  target: ['chrome123', 'firefox120', 'safari17.5'],
  jsx: 'automatic',
  jsxImportSource: 'preact',
  tsconfigRaw: {},
  loader: { '.svg': 'text' },
  charset: 'utf8',
  legalComments: 'none',
  banner: { js: notices(), css: notices() },
});

const constantsOf = { '.js': 'PAGE_SCRIPT', '.css': 'PAGE_STYLE' };
const lines = Object.entries(constantsOf).map(([ending, name]) => {
  const { contents } = outputFiles.find(({ path }) => path.endsWith(ending));
  return `export const ${name}: PageAsset = ${JSON.stringify(assetOf(contents))};\n`;
});

const text = `${head}/** A file that the page of the console loads. */
export interface PageAsset {
  /** Distinguishes the contents from those of other versions: hexadecimal digits. */
  readonly hash: string;
  /** Its text, compressed by Brotli, in base64. */
  readonly brotli: string;
}
${lines.join('')}`;

// Written only if it has changed, so that a process that reads it at the same time never gets half of it.
if (bundled !== text) writeFileSync(target, text);

function assetOf(contents) {
  const options = { params: { [constants.BROTLI_PARAM_SIZE_HINT]: contents.length } };
  return {
    hash: createHash('sha256').update(contents).digest('hex').slice(0, 16),
    brotli: brotliCompressSync(contents, options).toString('base64'),
  };
}

/** The hash of the page, this program, and the versions of the packages that they use. */
function hashOfSources() {
  const folder = new URL('./', import.meta.url);
  const sources = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => `${entry.parentPath}/${entry.name}`)
    .toSorted();
  const manifests = [...LIBRARIES, 'esbuild'].map((name) =>
    fileURLToPath(new URL(`../../../node_modules/${name}/package.json`, import.meta.url)),
  );
  const shared = ['../../engine/util/figures.ts', '../incident-text.ts'].map((file) =>
    fileURLToPath(new URL(file, import.meta.url)),
  );
  const sum = createHash('sha256');
  for (const file of [...sources, ...shared, ...manifests])
    sum.update(file.slice(file.lastIndexOf('/'))).update(readFileSync(file));
  return sum.digest('hex').slice(0, 16);
}

/** The licenses of bundled packages, which require being included. */
function notices() {
  const texts = LIBRARIES.map((name) => {
    const read = (file) => readFileSync(new URL(`../../../node_modules/${name}/${file}`, import.meta.url), 'utf8');
    return `${name} ${JSON.parse(read('package.json')).version}\n\n${read('LICENSE').trim()}`;
  });
  return `/*!\n${texts.join('\n\n')}\n*/`;
}
