import { gzipSync } from 'node:zlib';
import { expect, it } from '@jest/globals';
import { buildSync } from 'esbuild';

const { outputFiles, metafile } = buildSync({
  entryPoints: ['lib/integrations/client/index.ts'],
  bundle: true,
  minify: true,
  write: false,
  metafile: true,
  platform: 'browser',
  format: 'esm',
});

it('is smaller than 5 kB compressed', () => {
  expect(gzipSync(outputFiles[0]!.contents, { level: 9 }).length).toBeLessThan(5000);
});

it('contains the parser of rate limit headers and nothing else', () => {
  const files = Object.keys(metafile.inputs);
  expect(files).toContain('lib/engine/limit-headers/rate-limit-fields.ts');
  expect(files.filter((file) => !/^lib\/(?:engine\/limit-headers|integrations\/client)\//.test(file))).toEqual([]);
  // A package that were left out would be imported.
  expect(Object.values(metafile.outputs).flatMap(({ imports }) => imports)).toEqual([]);
});
