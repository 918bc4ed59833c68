// Bundles the pages of the playground into playground/dist/: one file each, which asks no network for anything.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const LIBRARIES = ['preact', 'uplot', 'luxon', 'ms'];
const path = (name) => fileURLToPath(new URL(name, import.meta.url));

const shared = {
  bundle: true,
  minify: true,
  write: false,
  charset: 'utf8',
  legalComments: 'none',
  target: ['es2022', 'chrome123', 'firefox120', 'safari17.5'],
  tsconfigRaw: {},
  jsx: 'automatic',
  jsxImportSource: 'preact',
  logLevel: 'warning',
};

// In a shadow tree the element stands for the root, and the page says whether it is dark.
const tokens = readFileSync(path('tokens.css'), 'utf8')
  .replaceAll(':root', ':host')
  .replace(/^ *color-scheme:.*$/m, '');
const css = tokens + (await bundle({ entryPoints: [path('comparison/comparison.css')] }));
const script = await bundle({
  entryPoints: [path('comparison/element.ts')],
  format: 'esm',
  // The one module of Node that the algorithms' messages ask for.
  alias: { 'node:util': path('comparison/inspect.ts') },
  define: { STYLE: JSON.stringify(css) },
});

mkdirSync(path('dist'), { recursive: true });
writeFileSync(path('dist/sluice-comparison.js'), notices() + script);

async function bundle(options) {
  const { outputFiles } = await build({ ...shared, ...options });
  return outputFiles[0].text;
}

/** The licences of what is bundled, which ask to go with it. */
function notices() {
  const texts = LIBRARIES.map((name) => {
    const folder = path(`../node_modules/${name}/`);
    const licence = readdirSync(folder).find((file) => /^licen[cs]e/i.test(file));
    const { version } = JSON.parse(readFileSync(`${folder}package.json`, 'utf8'));
    return `${name} ${version}\n\n${readFileSync(folder + licence, 'utf8').trim()}`;
  });
  return `/*!\n${texts.join('\n\n')}\n*/\n`;
}
