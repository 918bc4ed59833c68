import { readFileSync, writeFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { headingOf, pageOf, REPOSITORY } from './pages.js';
import { groups } from './sidebar.js';
import { WORDS } from './words.js';

const SUMMARY =
  'Rate limiting for NestJS. Limits are declared on routes, controllers, the module and in code; one atomic call decides all limits of a request, on Redis or in the process.';

const read = (file: string): string => readFileSync(join(REPOSITORY, file), 'utf8');

/** The pages that help to use the library, in the groups of the sidebars. */
function usefulPages(): { text: string; files: string[] }[] {
  const all = groups()
    .filter(({ part }) => part !== 'internals')
    .map(({ text, entries }) => ({ text, files: entries.filter((entry) => typeof entry === 'string') }));
  all.find(({ text }) => text === 'Reference')!.files.unshift('docs/algorithms/README.md');
  return all;
}

/** The site's `llms.txt`: each page with what it is about. `base` is the path of the site. */
export function llmsText(base: string): string {
  const parts = usefulPages().map(
    ({ text, files }) => `## ${text}\n\n${files.map((file) => lineOf(file, base)).join('\n')}\n`,
  );
  return `# nestjs-sluice\n\n> ${SUMMARY}\n\nAll pages in one file: [llms-full.txt](${base}llms-full.txt)\n\n${parts.join('\n')}`;
}

/** The package's `llms.txt`: the pages that `docs/index.md` lists, as files of the package. */
export function llmsTextOfPackage(): string {
  const lines = read('docs/index.md')
    .replace(/^# .*$/m, 'How to use it, in short: [SKILL.md](SKILL.md)')
    .replaceAll(/^\| (?:[-\w]+ .*\| what it is about|-+ \| -+) +\|\n/gm, '')
    .replaceAll(/^\| (\[.*\)) +\| (.*?) +\|$/gm, '- $1: $2')
    .replaceAll(/\]\(([\w./-]+\.md)\)/g, '](docs/$1)')
    .replace('(docs/SKILL.md)', '(SKILL.md)');
  return `# nestjs-sluice\n\n> ${SUMMARY}\n\n${lines}`;
}

function lineOf(file: string, base: string): string {
  const path = pageOf(file)!.replace(/(?:(^|\/)index)?\.md$/, (_, folder?: string) => folder ?? '.html');
  const about = [aboutOf(file), ...(WORDS[file] === undefined ? [] : [`also: ${WORDS[file].join(', ')}`])];
  return `- [${headingOf(file)}](${base}${path}): ${about.filter((each) => each !== '').join('; ')}`;
}

/** The description of a page in a table of `docs/index.md`, or else its first sentence. */
function aboutOf(file: string): string {
  const link = `](${posix.relative('docs', file)})`;
  const row = read('docs/index.md')
    .split('\n')
    .find((line) => line.startsWith('| [') && line.split(' | ')[0]!.includes(link));
  if (row !== undefined) return row.split('|')[2]!.trim();
  const [, sentence = ''] = /^# .+\n\n([A-Z`][^]*?[.:])(?:\s|$)/.exec(read(file)) ?? [];
  return sentence
    .replace(/:$/, '')
    .replaceAll('\n', ' ')
    .replaceAll(/\[([^\]]+)\]\([^)]+\)/g, '$1');
}

/** The content of `llms-full.txt`: the pages themselves, each below its file's path. */
export function llmsFullText(): string {
  const pages = usefulPages().flatMap(({ files }) => files);
  return `# nestjs-sluice\n\n> ${SUMMARY}\n\n${pages.map((file) => `<!-- ${file} -->\n\n${read(file).trim()}\n`).join('\n')}`;
}

/** Writes both next to the pages of a built site. */
export function writeLlmsTexts(siteFolder: string, base: string): void {
  writeFileSync(join(siteFolder, 'llms.txt'), llmsText(base));
  writeFileSync(join(siteFolder, 'llms-full.txt'), llmsFullText());
}
