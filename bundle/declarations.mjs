/** Rolls up the declarations of build/. */
import { join, posix, relative, sep } from 'node:path';
import { rollup } from 'rollup';
import { dts } from 'rollup-plugin-dts';
import { ENTRIES, OPTIONAL, ROOT, sourceOf } from './manifest.mjs';

/** What of a folder goes into a second file: it would be too long to be compressed with its copy. */
const CONTRACT =
  /^engine\/algorithms\/(?:algorithm|capabilities|adaptive|in-flight|arrival-time|scale|leases|hold-options)/;

/** The texts of declarations by their paths. */
export async function bundledDeclarations() {
  const bundle = await rollup({
    input: Object.fromEntries(ENTRIES.map((entry) => [entry, join(ROOT, `${sourceOf(entry)}.d.ts`)])),
    plugins: [dts()],
    external: /^[^./]/,
    onwarn({ code, message }) {
      // Public types extend some that have no public name.
      // What a folder has of no use to users.
      if (code === 'EMPTY_BUNDLE') return;
      if (code !== 'PLUGIN_WARNING' || !message.includes('private shared type exports')) throw new Error(message);
    },
  });
  const { output } = await bundle.generate({
    format: 'es',
    // A file for each folder. npm compresses within 32 kB: what both formats have alike costs once if it is in small files.
    manualChunks: (path) => {
      const built = relative(ROOT, path).replaceAll(sep, '/');
      if (ENTRIES.some((entry) => built === `${sourceOf(entry)}.d.ts`)) return undefined;
      const file = posix.relative('build', built);
      return CONTRACT.test(file) ? 'algorithm-contract' : folderOf(file);
    },
    chunkFileNames: 'shared/[name].d.ts',
    minifyInternalExports: false,
    hoistTransitiveImports: false,
  });
  await bundle.close();
  return output
    .filter(({ isEntry, exports }) => isEntry || exports.length > 0)
    .map(({ fileName, code }) => [fileName, withOptionalPeers(code)]);
}

/** The folder that a file is in: `engine/algorithms/gcra` goes into `algorithms`, and all of a small district into one file. */
function folderOf(file) {
  const [district, folder] = file.split('/');
  return ['console', 'cli', 'testing'].includes(district) || folder.includes('.') ? district : folder;
}

/** The comment by which types of a package that is not installed are `any` belongs before its import, which the bundler has moved. */
function withOptionalPeers(code) {
  const [ignore] = /\/\*\* @ts-ignore .*? \*\/\n/.exec(code) ?? [''];
  return code
    .replaceAll(ignore, '')
    .replaceAll(/^import .* from '(.*)';$/gm, (line, name) => (OPTIONAL.has(name) ? ignore + line : line));
}
