import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import type { ListedRoute } from '../../nest/routes/route-list.js';

/** A route with the place of its method. */
export interface LocatedRoute extends ListedRoute {
  /** The file, relative to the working directory; absent if none was found. */
  readonly file?: string;
  readonly line?: number;
}

const BUILT = /\.(?:js|cjs|mjs)$/;
/** The largest file that is searched, and the most files. */
const MOST_BYTES = 5_000_000;
const MOST_FILES = 20_000;

interface Text {
  readonly file: string;
  readonly lines: readonly string[];
}

/** Finds the methods of routes in the built files of an app, and with source maps in its sources. */
export class Locator {
  private known: Map<string, Text[]> | undefined;
  private readonly maps = new Map<string, SourceMap | undefined>();

  /** @param folder the folder of the built files */
  constructor(private readonly folder: string) {}

  locate(route: ListedRoute): LocatedRoute {
    const place = this.placeOf(route);
    return place === undefined ? route : { ...route, ...place };
  }

  private placeOf({ controller, handler }: ListedRoute): { file: string; line: number } | undefined {
    const texts = this.classes().get(controller) ?? [];
    // Without its method, a class of the same name is another one.
    for (const { file, lines } of texts) {
      const start = lines.findIndex((line) => classIn(line) === controller);
      const rest = lines.slice(start + 1);
      const end = rest.findIndex((line) => classIn(line) !== undefined);
      const method = (end < 0 ? rest : rest.slice(0, end)).findIndex((line) => definesMethod(line, handler));
      if (method >= 0) return this.sourceOf(file, start + 1 + method, rest[method]!.search(/\S/));
    }
    return undefined;
  }

  private classes(): Map<string, Text[]> {
    if (this.known !== undefined) return this.known;
    this.known = new Map();
    for (const file of builtFiles(this.folder)) {
      const text = readFileSync(file, 'utf8');
      if (text.length > MOST_BYTES || !text.includes('class ')) continue;
      const lines = text.split('\n');
      for (const name of new Set(lines.map(classIn))) {
        if (name === undefined) continue;
        this.known.set(name, [...(this.known.get(name) ?? []), { file, lines }]);
      }
    }
    return this.known;
  }

  private sourceOf(file: string, line: number, column: number): { file: string; line: number } {
    const entry = this.mapOf(file)?.findEntry(line, column);
    if (entry !== undefined && 'originalSource' in entry && typeof entry.originalSource === 'string') {
      const source = resolve(dirname(file), entry.originalSource);
      return { file: relative(process.cwd(), source), line: entry.originalLine + 1 };
    }
    return { file: relative(process.cwd(), file), line: line + 1 };
  }

  private mapOf(file: string): SourceMap | undefined {
    const map = `${file}.map`;
    if (!this.maps.has(map)) this.maps.set(map, existsSync(map) ? readMap(map) : undefined);
    return this.maps.get(map);
  }
}

function readMap(file: string): SourceMap | undefined {
  try {
    return new SourceMap(JSON.parse(readFileSync(file, 'utf8')) as ConstructorParameters<typeof SourceMap>[0]);
  } catch {
    return undefined;
  }
}

function builtFiles(folder: string): string[] {
  const files: string[] = [];
  const visit = (path: string): void => {
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      if (files.length >= MOST_FILES || entry.name === 'node_modules' || entry.name.startsWith('.')) continue;
      if (entry.isDirectory()) visit(join(path, entry.name));
      else if (BUILT.test(entry.name)) files.push(join(path, entry.name));
    }
  };
  visit(folder);
  return files;
}

function classIn(line: string): string | undefined {
  return /(?:^|[\s=(])class\s+([\w$]+)/.exec(line)?.[1];
}

function definesMethod(line: string, name: string): boolean {
  const text = line.trimStart().replace(/^(?:async\s+)?(?:\*\s*)?/, '');
  return text.startsWith(`${name}(`) && /\{\s*(?:\}|return\b.*|.*\})?\s*$/.test(text);
}
