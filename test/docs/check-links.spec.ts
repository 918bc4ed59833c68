import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { problemsOfSite } from '../../docs/.vitepress/check-links.mjs';

describe('the check of a built site', () => {
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-links-'));
  });

  afterEach(() => rm(folder, { recursive: true }));

  async function problemsOf(files: Record<string, string>, base?: string): Promise<string[]> {
    for (const [name, text] of Object.entries(files)) {
      await mkdir(dirname(join(folder, name)), { recursive: true });
      await writeFile(join(folder, name), text);
    }
    return problemsOfSite(folder, base);
  }

  it('lets pass what leads somewhere', async () => {
    const index =
      '<p id="a&amp;b"><a href="guides/one.html#über">1</a> <a href="#a&amp;b">2</a> <a href="/guides/">3</a>' +
      ' <a href=\'/guides/one\'>4</a> <a href="https://example.com/">5</a> <a href="mailto:a@example.com">6</a>' +
      ' <img src="data:image/svg+xml,x"> <script>"<a href=no.html>"</script> <!-- <a href="no.html"> -->';
    const one = '<h2 id="über"><a href="../index.html#a%26b">up</a></h2>';
    expect(await problemsOf({ 'index.html': index, 'guides/one.html': one, 'guides/index.html': '' })).toEqual([]);
  });

  it.each([
    ['<a href="no.html">', 'index.html: no.html: no such file'],
    ['<a class="x" href="/no/">', 'index.html: /no/: no such file'],
    ['<a href="other.html#no">', 'index.html: other.html#no: nothing in other.html has the id no'],
    ['<a href="#no">', 'index.html: #no: nothing in index.html has the id no'],
    ['<img alt="" src="no.svg" />', 'index.html: no.svg: no such file'],
    ['<source srcset="other.html 1x, no.png 2x" />', 'index.html: no.png: no such file'],
    ['<script src="https://example.com/a.js">', 'index.html: <script> loads https://example.com/a.js of another host'],
    ['<link rel="preconnect" href="//example.com">', 'index.html: <link> loads //example.com of another host'],
  ])('tells of %s', async (html, problem) => {
    expect(await problemsOf({ 'index.html': html, 'other.html': '' })).toEqual([problem]);
  });

  it.each([
    ['a.css', '@import "https://example.com/a.css";'],
    ['a.css', 'a { background: url(https://example.com/a.css) }'],
    ['a.html', "<svg><style>\n@import url('https://example.com/a.css');</style></svg>"],
    ['a.html', '<p style="background: url(&quot;https://example.com/a.css&quot;)">'],
  ])('tells of what a style loads in %s: %s', async (file, text) => {
    expect(await problemsOf({ [file]: text })).toEqual([
      `${file}: a style loads https://example.com/a.css of another host`,
    ]);
  });

  it('knows the path under which the site will stand', async () => {
    const files = {
      'index.html': '<a href="/docs/one.html"> <a href="/one.html"> <a href="one.html">',
      'one.html': '',
    };
    expect(await problemsOf(files, '/docs/')).toEqual(['index.html: /one.html leads out of /docs/']);
  });
});
