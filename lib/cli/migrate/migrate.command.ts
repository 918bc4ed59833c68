import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type TS from 'typescript';
import { cliMessages, migrateMessages } from '../../engine/errors/messages/cli.js';
import { counted } from '../../engine/errors/wording.js';
import { printableLines } from '../../engine/util/printable.js';
import { VERSION } from '../../storage/telemetry/version.js';
import { type Command, InputError, type Terminal, UsageError } from '../command.js';
import { linesOf, type Note, unifiedDiff } from './report.js';
import { finished } from './imports.js';
import { type Compiler, Formatter, loadCompiler } from './project-tools.js';
import { hasUncommittedChanges, Project } from './project.js';
import { migrateRateLimiterFlexible } from './rate-limiter-flexible/index.js';
import { Edits, type Source } from './source.js';
import { migrateThrottler, THROTTLER_PACKAGES } from './throttler/index.js';

/** The libraries that can be migrated: the name on the command line, their packages, and the function that converts them. */
const ORIGINS = {
  throttler: { packages: THROTTLER_PACKAGES, migrate: migrateThrottler },
  'rate-limiter-flexible': { packages: ['rate-limiter-flexible'], migrate: migrateRateLimiterFlexible },
} as const;
const NAMES = Object.keys(ORIGINS) as (keyof typeof ORIGINS)[];

/** A file and its new text; `undefined` if it becomes empty. */
interface Change {
  readonly path: string;
  readonly shown: string;
  readonly before: string;
  readonly after: string | undefined;
  readonly note?: Note;
}

export const migrateCommand: Command = {
  usage: ['[options] [path...]'],
  about: `Converts an app's code from @nestjs/throttler and rate-limiter-flexible so that its routes
respond as before. Edits only the code that it converts, and package.json. Reports each
change, and each place that you need to convert yourself, with the reason. Formats the
files that it changes with the project's Prettier, if they were formatted with it before.

A path is a file or a folder (default: this folder). Skips the folders node_modules, dist,
build and coverage. Uses the project's own TypeScript, version 5 or 6.`,
  options: {
    'dry-run': { help: 'Prints the changes as a unified diff; writes nothing' },
    from: { value: '<package>', help: 'Converts only one package: throttler or rate-limiter-flexible' },
    force: { help: 'Runs even if the git work tree has uncommitted changes' },
  },
  exits: { 0: 'success, even if some places are left for you', 1: 'the project cannot be read' },
  async run({ switches, values, positionals }, terminal) {
    const from = values.get('from');
    const origins = NAMES.filter((name) => from === undefined || name === from);
    if (origins.length === 0) throw new UsageError(cliMessages.wrongOption('from', from, `one of ${NAMES.join(', ')}`));
    const folder = process.cwd();
    const isDry = switches.has('dry-run');
    if (!isDry && !switches.has('force') && hasUncommittedChanges(folder)) {
      throw new InputError(migrateMessages.uncommitted(folder));
    }
    const project = new Project(loadCompiler(folder), folder, positionals.length === 0 ? ['.'] : positionals);
    const changes = changesOf(project, origins);
    const formatter = new Formatter(folder);
    for (const { path, shown, before, after } of changes) {
      const text = after && (await formatter.format(path, before, after));
      if (isDry) terminal.stdout.write(unifiedDiff(shown, before, text));
      else if (text === undefined) rmSync(path);
      else writeFileSync(path, project.inOwnLines(path, text));
    }
    const notes = changes.flatMap(({ note }) => note ?? []);
    const changed = [...project.sourcesRead.flatMap((source) => source.changed), ...notes];
    const left = project.sourcesRead.flatMap((source) => source.left);
    write(terminal, changed, left, changes.length, isDry);
    return 0;
  },
};

function changesOf(project: Project, origins: readonly (keyof typeof ORIGINS)[]): Change[] {
  const rootsOf = (sources: readonly Source[]) => new Set(sources.map(({ path }) => project.rootOf(path)));
  const migrated = origins.map((name) => ({ ...ORIGINS[name], roots: rootsOf(ORIGINS[name].migrate(project)) }));
  const changed = project.sourcesRead.flatMap((source): Change[] => {
    const { path, shown, text } = source;
    const after = finished(source);
    return after === text ? [] : [{ path, shown, before: text, after: after.trim() === '' ? undefined : after }];
  });
  if (changed.length === 0) return [];
  const manifests = [...new Set(migrated.flatMap(({ roots }) => [...roots]))].flatMap((root): Change[] => {
    if (root === undefined) return [];
    const texts = project.textsUnder(root);
    for (const { path, after } of changed) texts.set(path, after ?? '');
    const isUsed = (one: string): boolean =>
      [...texts.values()].some((text) => new RegExp(`['"]${one}['"/]`).test(text));
    const packages = migrated.flatMap((each): readonly string[] => (each.roots.has(root) ? each.packages : []));
    const removed = packages.filter((one) => !isUsed(one));
    const manifest = changedManifest(project.ts, root, removed);
    if (manifest === undefined) return [];
    const shown = project.shownOf(manifest.path);
    const note = { path: shown, line: manifest.line, text: manifestText(manifest.before, removed) };
    return [{ ...manifest, shown, note }];
  });
  return [...changed, ...manifests];
}

function manifestText(before: string, removed: readonly string[]): string {
  const gone = removed.filter((name) => before.includes(`"${name}"`));
  return `adds nestjs-sluice${gone.length === 0 ? '' : `, removes ${gone.join(', ')}`}: install dependencies again`;
}

function write({ stdout }: Terminal, changed: Note[], left: Note[], files: number, isDry: boolean): void {
  const lines: string[] = [];
  if (files === 0 && left.length === 0) lines.push('Nothing to convert.');
  if (changed.length > 0) {
    const does = isDry ? 'Would change' : 'Changed';
    lines.push(`${does} ${counted(changed.length, 'place')} in ${counted(files, 'file')}:`, ...linesOf(changed));
  }
  if (left.length > 0) lines.push(`Left ${counted(left.length, 'place')} for you:`, ...linesOf(left));
  if (files > 0 && !isDry) lines.push('Next: install dependencies, format, compile, and run your tests.');
  stdout.write(printableLines(lines));
}

const KINDS = ['dependencies', 'devDependencies', 'peerDependencies', 'optionalDependencies'];
const PACKAGE = 'nestjs-sluice';
/** The dependency on this package, in a package.json. */
const ADDED = `"${PACKAGE}": "^${VERSION}"`;

/** Adds this package and removes others in a package.json, as text, so that the rest is unchanged. */
function changedManifest(ts: Compiler, root: string, removed: readonly string[]) {
  const path = join(root, 'package.json');
  const before = readFileSync(path, 'utf8');
  const file = ts.parseJsonText(path, before);
  const top = file.statements[0]?.expression;
  if (top === undefined || !ts.isObjectLiteralExpression(top)) return undefined;
  const edits = new Edits(before);
  let line = 1;
  const sections = top.properties.flatMap((property) => {
    const section = ts.isPropertyAssignment(property) ? property.initializer : undefined;
    const name = property.name !== undefined && ts.isStringLiteral(property.name) ? property.name.text : '';
    return KINDS.includes(name) && section !== undefined && ts.isObjectLiteralExpression(section)
      ? [{ name, section }]
      : [];
  });
  let hasAdded = sections.some(({ section }) => section.properties.some((property) => nameOf(property) === PACKAGE));
  for (const { name, section } of sections) {
    const entries = [...section.properties];
    const kept = entries.filter((property) => !removed.includes(nameOf(property)));
    const isHost = !hasAdded && name === 'dependencies';
    if (kept.length === entries.length && !isHost) continue;
    const texts = new Map(kept.map((property) => [nameOf(property), property.getText(file)]));
    if (isHost) texts.set(PACKAGE, ADDED);
    if (isHost) hasAdded = true;
    const isSorted = kept.every((property, index) => index === 0 || nameOf(kept[index - 1]!) < nameOf(property));
    const names = isSorted ? [...texts.keys()].toSorted() : [...texts.keys()];
    const start = section.getStart(file);
    const lead = /^\{(\s*)/.exec(before.slice(start))![1]!;
    const tail = /(\s*)\}$/.exec(section.getText(file))![1]!;
    const between = lead.includes('\n') ? `,${lead}` : ', ';
    edits.replace(start, section.end, `{${lead}${names.map((key) => texts.get(key)).join(between)}${tail}}`);
    line = file.getLineAndCharacterOfPosition(start).line + 1;
  }
  const last = top.properties.at(-1);
  if (!hasAdded && last !== undefined) edits.insert(last.end, `,\n  "dependencies": {\n    ${ADDED}\n  }`);
  const after = edits.render();
  return after === before ? undefined : { path, before, after, line };
}

function nameOf(property: TS.ObjectLiteralElementLike): string {
  return (property.name as TS.StringLiteral).text;
}
