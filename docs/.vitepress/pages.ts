import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of the repository. Paths of Markdown files are relative to it, with slashes. */
export const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url));

const OF_THE_ROOT = new Map([
  ['CONTRIBUTING.md', 'contributing.md'],
  ['SECURITY.md', 'security.md'],
  ['CHANGELOG.md', 'changelog.md'],
]);

/** The page that the site makes of a Markdown file, such as `guides/waiting.md`, or undefined if it makes none. */
export function pageOf(file: string): string | undefined {
  if (!file.endsWith('.md')) return undefined;
  if (!file.startsWith('docs/')) return OF_THE_ROOT.get(file);
  return file.slice('docs/'.length).replace(/(^|\/)README\.md$/, '$1index.md');
}

/** All Markdown files that are pages of the site. */
export function filesOfPages(): string[] {
  const inDocs = readdirSync(join(REPOSITORY, 'docs'), { recursive: true, encoding: 'utf8' })
    .map((name) => `docs/${name.replaceAll('\\', '/')}`)
    .filter((file) => file.endsWith('.md') && !file.startsWith('docs/.vitepress/'));
  return [...OF_THE_ROOT.keys(), ...inDocs.toSorted()];
}

/** The first heading of a Markdown file, without marks of code. */
export function headingOf(file: string): string {
  const [, heading] = /^# (.+)$/m.exec(readFileSync(join(REPOSITORY, file), 'utf8')) ?? [];
  if (heading === undefined) throw new Error(`${file} has no heading of the first level, which is its title`);
  return heading.replaceAll('`', '');
}

/** The file that is rendered, by what VitePress tells its plugins of Markdown. */
export function fileOf(env: unknown): string {
  const { realPath, path } = env as { realPath?: string; path: string };
  return relative(REPOSITORY, realPath ?? path).replaceAll(sep, '/');
}
