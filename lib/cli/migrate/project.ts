import { execFileSync, type StdioOptions } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { migrateMessages } from '../../engine/errors/messages/cli.js';
import { InputError } from '../command.js';
import { type Compiler, jsonOf, withParents } from './project-tools.js';
import { Source } from './source.js';

const SKIPPED = /^(?:node_modules|dist|build|coverage|\..+)$/;
const CODE = /(?<!\.d)\.[cm]?tsx?$/;

interface Declaration {
  readonly source: Source;
  readonly node: ReturnType<Source['declared']>;
}

export class Project {
  private readonly paths: readonly string[];
  private readonly texts = new Map<string, string>();
  private readonly withCarriageReturns = new Set<string>();
  private readonly sources = new Map<string, Source>();

  constructor(
    readonly ts: Compiler,
    /** Reports name files relative to it. */
    private readonly folder: string,
    given: readonly string[],
  ) {
    const found = new Set<string>();
    for (const path of given) collect(resolve(folder, path), path, found);
    this.paths = [...found].toSorted();
    for (const path of this.paths) this.texts.set(path, this.readText(path));
  }

  matching(pattern: RegExp): Source[] {
    return this.paths.filter((path) => pattern.test(this.texts.get(path)!)).map((path) => this.sourceAt(path));
  }

  get sourcesRead(): readonly Source[] {
    return [...this.sources.values()];
  }

  /** The texts of all code in a folder, including files that were not passed. */
  textsUnder(root: string): Map<string, string> {
    const found = new Set<string>();
    collect(root, root, found);
    return new Map([...found].map((path) => [path, this.texts.get(path) ?? readFileSync(path, 'utf8')]));
  }

  shownOf(path: string): string {
    return relative(this.folder, path).replaceAll(sep, '/');
  }

  /** The folder of the nearest package.json. */
  rootOf(path: string): string | undefined {
    return withParents(dirname(path)).find((folder) => existsSync(join(folder, 'package.json')));
  }

  /** The major version of a package that a file uses, based on its package.json or the installed package. */
  majorOf(name: string, path: string): number | undefined {
    for (let root = this.rootOf(path); root !== undefined; root = this.rootOf(root)) {
      const manifest = jsonOf(join(root, 'package.json'));
      for (const kind of ['dependencies', 'devDependencies', 'peerDependencies']) {
        const range = (manifest?.[kind] as Record<string, unknown> | undefined)?.[name];
        const major = typeof range === 'string' ? /\d+/.exec(range)?.[0] : undefined;
        if (major !== undefined) return Number(major);
      }
      const installed = jsonOf(join(root, 'node_modules', name, 'package.json'))?.['version'];
      if (typeof installed === 'string') return Number.parseInt(installed, 10);
    }
    return undefined;
  }

  /** The declaration of a constant or function with that name: in this file, or in the one that it is imported from. */
  declaration(source: Source, name: string): Declaration | undefined {
    const own = source.declared(name);
    if (own !== undefined) return { source, node: own };
    const from = source.imported.get(name);
    if (from === undefined) return undefined;
    if (from.name === 'default') return this.exportedByDefault(from.module);
    const pattern = new RegExp(String.raw`\b(?:const|function)\s+${from.name}\b`);
    const places = this.matching(pattern)
      .map((other) => ({ source: other, node: other.declared(from.name) }))
      .filter(({ node }) => node !== undefined);
    return places.length === 1 ? places[0] : places.find(({ source: { path } }) => source.pathOf(from.module) === path);
  }

  /** The default export of a module. For an alias, only the last part is considered. */
  private exportedByDefault(module: string): Declaration | undefined {
    const end = `/${module.split('/').at(-1)!.replace(/\.js$/, '')}`;
    const places = this.matching(/export default/)
      .filter(({ shown }) => `/${shown.replace(/\.[cm]?tsx?$/, '')}`.endsWith(end))
      .map((source) => ({ source, node: source.exportedByDefault() }));
    return places.length === 1 && places[0]?.node !== undefined ? places[0] : undefined;
  }

  /** Converts a text to the line ends of its file. */
  inOwnLines(path: string, text: string): string {
    return this.withCarriageReturns.has(path) ? text.replaceAll('\n', '\r\n') : text;
  }

  private readText(path: string): string {
    const text = readFileSync(path, 'utf8');
    if (!text.includes('\r\n')) return text;
    this.withCarriageReturns.add(path);
    return text.replaceAll('\r\n', '\n');
  }

  /** The source of a file, also of one that was not passed. */
  sourceAt(path: string): Source {
    let source = this.sources.get(path);
    if (source === undefined) {
      source = new Source(this.ts, path, this.shownOf(path), this.texts.get(path) ?? this.readText(path));
      this.sources.set(path, source);
    }
    return source;
  }
}

function collect(path: string, given: string, found: Set<string>): void {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) throw new InputError(migrateMessages.noPath(given));
  if (stats.isFile()) {
    if (!path.split(sep).includes('node_modules')) found.add(path);
    return;
  }
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    const inner = join(path, entry.name);
    if (entry.isDirectory() && !SKIPPED.test(entry.name)) collect(inner, inner, found);
    else if (entry.isFile() && CODE.test(entry.name)) found.add(inner);
  }
}

/** Returns true if a folder is in a git work tree with uncommitted changes. */
export function hasUncommittedChanges(folder: string): boolean {
  try {
    const stdio: StdioOptions = ['ignore', 'pipe', 'ignore'];
    const options = { cwd: folder, encoding: 'utf8', stdio } as const;
    return execFileSync('git', ['status', '--porcelain', '--', '.'], options).trim() !== '';
  } catch {
    // Git isn't installed, or this isn't a work tree.
    return false;
  }
}
