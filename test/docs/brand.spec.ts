import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { PACKAGE_FOLDER } from '../support/processes/npm.js';

const read = (file: string): string => readFileSync(join(PACKAGE_FOLDER, file), 'utf8');
const [, light, dark] = /--accent: light-dark\((#\w{6}), (#\w{6})\)/.exec(read('lib/console/page/tokens.css'))!;

const FOLDERS = ['lib/console', 'playground', 'docs/.vitepress'];
const files = FOLDERS.flatMap((folder) =>
  readdirSync(join(PACKAGE_FOLDER, folder), { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name}`),
).filter((file) => !/node_modules|\/dist\/|\/cache\/|\/\.temp\/|generated/.test(file));

describe('the console, the playground and the site', () => {
  it('have one logo, in their one colour', () => {
    expect(files.filter((file) => file.endsWith('.svg'))).toEqual(['lib/console/page/logo.svg']);
    const logo = read('lib/console/page/logo.svg');
    expect(logo).toContain(light);
    expect(logo).toContain(dark);
  });

  it('take it and their colours from one place', () => {
    expect(read('lib/console/page/parts/icons.tsx')).toContain("from '../logo.svg'");
    expect(read('playground/build.mjs')).toContain('lib/console/page/logo.svg');
    expect(read('docs/.vitepress/config.ts')).toContain('lib/console/page/logo.svg');
    for (const style of ['playground/live/live.css', 'docs/.vitepress/theme/style.css']) {
      expect(read(style)).toContain('lib/console/page/tokens.css');
    }
  });

  it('write their accent nowhere else, but where TypeDoc cannot read it', () => {
    const colour = new RegExp(`${light}|${dark}`, 'i');
    const writing = files.filter((file) => /\.(?:css|tsx?|mjs|html|svg)$/.test(file) && colour.test(read(file)));
    expect(writing.toSorted()).toEqual([
      'docs/.vitepress/api/style.css',
      'lib/console/page/logo.svg',
      'lib/console/page/tokens.css',
    ]);
    expect(read('docs/.vitepress/api/style.css').match(/(?:link|outline): #\w+/g)).toEqual([
      `link: ${light}`,
      `outline: ${light}`,
      `link: ${dark}`,
      `outline: ${dark}`,
    ]);
  });
});
