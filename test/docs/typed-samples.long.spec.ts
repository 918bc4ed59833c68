import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { PACKAGE_FOLDER } from '../support/processes/npm.js';

/** What Nest gives as `any` unless a type is named: the lint rules of a new project refuse what is done with it. */
const UNTYPED = /\.(?:getRequest|getResponse|getClient|getData|getContext)\(\)(?=[.?]|;|,? \?\?)/g;

/** Neither Express nor the browser's types say that a `Request` has a user: it does not compile in a new project. */
const WITHOUT_USER = /getRequest<Request>\(\)\??\.user/g;

const pages = ['docs', 'docs/guides', 'docs/algorithms', 'docs/reference'].flatMap((folder) =>
  readdirSync(join(PACKAGE_FOLDER, folder))
    .filter((file) => file.endsWith('.md'))
    .map((file) => `${folder}/${file}`),
);

it.each(['README.md', ...pages])('%s names the type of what Nest gives as any', (page) => {
  expect(codeOf(page).flatMap((text) => text.match(UNTYPED) ?? [])).toEqual([]);
});

it.each(['README.md', ...pages])('%s looks for a user only in types that have one', (page) => {
  expect(codeOf(page).flatMap((text) => text.match(WITHOUT_USER) ?? [])).toEqual([]);
});

/** The code of a page: its blocks, and what stands within lines. */
function codeOf(page: string): string[] {
  const markdown = readFileSync(join(PACKAGE_FOLDER, page), 'utf8');
  return [...markdown.matchAll(/^```ts\n(.*?)^```/gms), ...markdown.matchAll(/`([^`\n]+)`/g)].map(([, text]) => text!);
}
