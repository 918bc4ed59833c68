import type TS from 'typescript';
import type { Source } from './source.js';

/** What was done at a place, or why nothing was. */
export interface Note {
  readonly path: string;
  readonly line: number;
  readonly text: string;
}

/** What a migration changed, and what it left. */
export class MigrationReport {
  readonly changed: Note[] = [];
  readonly left: Note[] = [];

  done(source: Source, node: TS.Node, text: string): void {
    this.changed.push({ path: source.shown, line: source.lineOf(node), text });
  }

  /** Says what is left, why, and what to do instead. Each place is named once for one reason. */
  leave(source: Source, node: TS.Node, text: string): void {
    const note = { path: source.shown, line: source.lineOf(node), text };
    const isKnown = this.left.some(
      (other) => other.path === note.path && other.line === note.line && other.text === text,
    );
    if (!isKnown) this.left.push(note);
  }
}

/** Notes as lines, in the order of files. */
export function linesOf(notes: readonly Note[]): string[] {
  return notes
    .toSorted((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : a.line - b.line))
    .map(({ path, line, text }) => `  ${path}:${line} ${text}`);
}
