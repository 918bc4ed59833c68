import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { PACKAGE_FOLDER } from '../support/npm.js';

/** What Nest gives as `any` unless a type is named: the lint rules of a new project refuse what is done with it. */
const UNTYPED = /\.(?:getRequest|getResponse|getClient|getData|getContext)\(\)(?=[.?]|;|,? \?\?)/g;

const pages = ['docs', 'docs/guides', 'docs/algorithms'].flatMap((folder) =>
  readdirSync(join(PACKAGE_FOLDER, folder))
    .filter((file) => file.endsWith('.md'))
    .map((file) => `${folder}/${file}`),
);

it.each(['README.md', ...pages])('%s names the type of what Nest gives as any', (page) => {
  const markdown = readFileSync(join(PACKAGE_FOLDER, page), 'utf8');
  const code = [...markdown.matchAll(/^```ts\n(.*?)^```/gms), ...markdown.matchAll(/`([^`\n]+)`/g)];
  expect(code.flatMap(([, text]) => text!.match(UNTYPED) ?? [])).toEqual([]);
});
