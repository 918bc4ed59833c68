import type { Writable } from 'node:stream';
import { styleText } from 'node:util';

/** A stream that may be a terminal. */
type Screen = Writable & {
  readonly isTTY?: boolean;
  readonly columns?: number;
  getColorDepth?(environment?: object): number;
};

/** How text looks on a stream. */
export interface Look {
  /** The most characters of a line. */
  readonly width: number;
  paint(style: 'bold' | 'green' | 'red', text: string): string;
}

/** No colours, and lines of any length: for files and pipes. */
export const PLAIN: Look = { width: Infinity, paint: (_, text) => text };

/** The look of a stream: of a terminal, or as `COLUMNS`, `NO_COLOR` and `FORCE_COLOR` say. */
export function lookOf(stream: Screen, environment: NodeJS.ProcessEnv): Look {
  const columns = Number(environment['COLUMNS'] ?? (stream.isTTY === true ? stream.columns : NaN));
  const width = Number.isInteger(columns) && columns > 0 ? columns : Infinity;
  if (!hasColours(stream, environment)) return { ...PLAIN, width };
  return { width, paint: (style, text) => styleText(style, text, { validateStream: false }) };
}

function hasColours(stream: Screen, environment: NodeJS.ProcessEnv): boolean {
  const forced = environment['FORCE_COLOR'];
  if (forced !== undefined) return forced !== '0' && forced !== 'false';
  if ((environment['NO_COLOR'] ?? '') !== '') return false;
  return stream.isTTY === true && (stream.getColorDepth?.(environment) ?? 1) > 1;
}
