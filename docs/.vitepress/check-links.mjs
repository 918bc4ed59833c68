/**
 * Checks a built site: every link within it leads to a file and, behind a `#`, to something that has this id; and no page loads
 * anything of another host. As a program it checks `site/`.
 */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';

const COMMENTS_AND_CODE = /<!--[^]*?-->|(?<=<(?:script|style)\b[^>]*>)[^]*?(?=<\/(?:script|style)>)/g;
const TAGS = /<([a-z][\w-]*)((?:\s+[^\s=>]+(?:="[^"]*"|='[^']*'|=[^\s>]*)?)*)\s*\/?>/gi;
const ATTRIBUTES = /([^\s=]+)(?:="([^"]*)"|='([^']*)'|=([^\s>]*))?/g;
const STYLES = /<style\b[^>]*>([^]*?)<\/style>|\sstyle="([^"]*)"/g;
const LOADED_BY_STYLES = /url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)/g;

/** The problems, a line for each. `folder` has the site, `base` is the path under which it will be. */
export function problemsOfSite(folder, base = '/') {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => name.replaceAll('\\', '/'));
  const pages = new Map();
  const page = (file) => {
    if (!pages.has(file)) pages.set(file, read(join(folder, file)));
    return pages.get(file);
  };
  const problems = [];
  for (const file of files.filter((name) => name.endsWith('.html'))) {
    for (const { tag, url } of page(file).links) {
      const problem = problemOf({ folder, base, page }, file, tag, url);
      if (problem !== undefined) problems.push(`${file}: ${problem}`);
    }
  }
  for (const file of files.filter((name) => /\.(?:css|html)$/.test(name))) {
    const text = readFileSync(join(folder, file), 'utf8');
    const styles = file.endsWith('.css')
      ? [text]
      : [...text.matchAll(STYLES)].map(([, block, own]) => unescaped(block ?? own));
    for (const [, one, other] of styles.flatMap((style) => [...style.matchAll(LOADED_BY_STYLES)])) {
      if (isElsewhere(one ?? other)) problems.push(`${file}: a style loads ${one ?? other} of another host`);
    }
  }
  return [...new Set(problems)];
}

function problemOf({ folder, base, page }, file, tag, url) {
  if (isElsewhere(url)) return tag === 'a' ? undefined : `<${tag}> loads ${url} of another host`;
  if (/^[a-z]+:/i.test(url)) return undefined;
  const { pathname, hash } = new URL(url, new URL(`http://site${base}${file}`));
  if (!pathname.startsWith(base)) return `${url} leads out of ${base}`;
  const path = decodeURIComponent(pathname.slice(base.length));
  const target = path === '' || path.endsWith('/') ? `${path}index.html` : existingPage(folder, path);
  if (!existsSync(join(folder, target)) || !statSync(join(folder, target)).isFile()) return `${url}: no such file`;
  const anchor = decodeURIComponent(hash.slice(1));
  if (anchor === '' || !target.endsWith('.html')) return undefined;
  return page(target).ids.has(anchor) ? undefined : `${url}: nothing in ${target} has the id ${anchor}`;
}

/** Hosts of static files answer for `start` with `start.html`. */
function existingPage(folder, path) {
  return posix.extname(path) === '' && existsSync(join(folder, `${path}.html`)) ? `${path}.html` : path;
}

function isElsewhere(url) {
  return /^(?:https?:)?\/\//i.test(url);
}

function read(path) {
  const links = [];
  const ids = new Set();
  for (const [, tag, text] of readFileSync(path, 'utf8').replaceAll(COMMENTS_AND_CODE, '').matchAll(TAGS)) {
    for (const [, name, ...values] of text.matchAll(ATTRIBUTES)) {
      const value = unescaped(values.find((each) => each !== undefined) ?? '');
      if (name === 'id' || (name === 'name' && tag === 'a')) ids.add(value);
      else if (name === 'href' || name === 'src') links.push({ tag, url: value });
      else if (name === 'srcset')
        links.push(...value.split(',').map((each) => ({ tag, url: each.trim().split(' ')[0] })));
    }
  }
  return { links, ids };
}

function unescaped(text) {
  return text
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&#x27;', "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const problems = problemsOfSite(fileURLToPath(new URL('../../site', import.meta.url)), process.env.DOCS_BASE);
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) process.exit(1);
  console.log('All links of site/ lead to what is there.');
}
