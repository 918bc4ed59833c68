import type TS from 'typescript';
import type { Source } from './source.js';

/** A note about a change at some place, or about the reason why nothing was changed. */
export interface Note {
  readonly path: string;
  readonly line: number;
  readonly text: string;
}

/** The changes of a migration, and the places that it left unchanged. */
export class MigrationReport {
  readonly changed: Note[] = [];
  readonly left: Note[] = [];

  done(source: Source, node: TS.Node, text: string): void {
    this.changed.push({ path: source.shown, line: source.lineOf(node), text });
  }

  /** Reports a place that is left unchanged, the reason and the alternative. Each place is reported once per reason. */
  leave(source: Source, node: TS.Node, text: string): void {
    const note = { path: source.shown, line: source.lineOf(node), text };
    const isKnown = this.left.some(
      (other) => other.path === note.path && other.line === note.line && other.text === text,
    );
    if (!isKnown) this.left.push(note);
  }
}

/** The notes as lines, in the order of files. */
export function linesOf(notes: readonly Note[]): string[] {
  return notes
    .toSorted((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : a.line - b.line))
    .map(({ path, line, text }) => `  ${path}:${line} ${text}`);
}
