import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { PACKAGE_FOLDER } from './npm.js';

const TEMPLATES = join(PACKAGE_FOLDER, 'test/package/projects');

/** Major versions of Nest whose CLI generates projects. */
export type NestVersion = 11 | 12;

/** The sources of a project that the Nest CLI generates, by their paths. */
export function generatedSources(nest: NestVersion): Record<string, string> {
  return sourcesOf('new', nest);
}

/** All files of a generated project to which somebody has added limits, by their paths. */
export function projectWithLimits(nest: NestVersion): Record<string, string> {
  return { ...filesOf(`nest-${nest}`), ...generatedSources(nest), ...sourcesOf('limits', nest) };
}

function sourcesOf(template: string, nest: NestVersion): Record<string, string> {
  const sources = Object.entries(filesOf(template));
  return Object.fromEntries(sources.map(([path, text]) => [path, nest === 11 ? asCommonJs(text) : text]));
}

/** Nest 12 generates ES modules. Nest 11 generates the same files with other imports, and with no `await` outside of functions. */
function asCommonJs(source: string): string {
  return source.replaceAll(/(?<= from '.+)\.js(?=';$)/gm, '').replaceAll(/^await /gm, '');
}

function filesOf(template: string): Record<string, string> {
  const folder = join(TEMPLATES, template);
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = files.map(({ parentPath, name }) => join(parentPath, name));
  return Object.fromEntries(
    paths.map((path) => [relative(folder, path).replaceAll(sep, '/'), readFileSync(path, 'utf8')]),
  );
}

/** Writes files by their paths in a folder. */
export function writeFiles(folder: string, files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
}
