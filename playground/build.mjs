// Bundles the playground into playground/dist/: the comparison, a file for any page, and the page of the sample app.
// Nothing in them asks another host for anything.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

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

// The console's. In a shadow tree the element stands for the root, and the page says whether it is dark.
const [tokens] = /:root \{.*?^\}/ms.exec(readFileSync(path('../lib/console/page/tokens.css'), 'utf8'));
const host = tokens.replace(':root', ':host').replace(/^ *color-scheme:.*$/m, '');
const css = host + (await bundle({ entryPoints: [path('comparison/comparison.css')] }));
const comparison = await bundle({
  entryPoints: [path('comparison/element.ts')],
  format: 'esm',
  // The one module of Node that the algorithms' messages ask for.
  alias: { 'node:util': path('comparison/inspect.ts') },
  define: { STYLE: JSON.stringify(css) },
});

const live = await bundle({ entryPoints: [path('live/main.tsx')], format: 'esm' });
const files = {
  'sluice-comparison.js': notices('preact', 'uplot', 'luxon', 'ms') + comparison,
  'live.js': notices('preact', 'structured-headers') + live,
  'live.css': await bundle({ entryPoints: [path('live/live.css')] }),
  'index.html': readFileSync(path('live/index.html')),
  'icon.svg': readFileSync(path('../lib/console/page/logo.svg')),
};
mkdirSync(path('dist'), { recursive: true });
for (const [name, content] of Object.entries(files)) writeFileSync(path(`dist/${name}`), content);

async function bundle(options) {
  const { outputFiles } = await build({ ...shared, ...options });
  return outputFiles[0].text;
}

/** The licences of what is bundled, which ask to go with it. */
function notices(...libraries) {
  const texts = libraries.map((name) => {
    const folder = path(`../node_modules/${name}/`);
    const licence = readdirSync(folder).find((file) => /^licen[cs]e/i.test(file));
    const { version } = JSON.parse(readFileSync(`${folder}package.json`, 'utf8'));
    return `${name} ${version}\n\n${readFileSync(folder + licence, 'utf8').trim()}`;
  });
  return `/*!\n${texts.join('\n\n')}\n*/\n`;
}
