import { readFileSync } from 'node:fs';
import type { Stop } from '../tour.js';

/** Seen from `dist/playground/`, where this runs. */
const SOURCES = new URL('../../src/', import.meta.url);

/** The pieces of the sample's own source that limit a route. Throws if a piece is not where the route says. */
export function codeOf({ code }: Stop): string {
  return code.flatMap(([file, ...beginnings]) => beginnings.map((each) => pieceOf(file, each))).join('\n\n');
}

/** From the line that begins so to the one at whose end all brackets are closed, without its indentation. */
function pieceOf(file: string, beginning: string): string {
  const lines = readFileSync(new URL(file, SOURCES), 'utf8').split('\n');
  const start = lines.findIndex((line) => line.trimStart().startsWith(beginning));
  if (start === -1) throw new Error(`${file} has no line that begins with ${beginning}`);
  const indentation = /^ */.exec(lines[start]!)![0].length;
  let open = 0;
  const end = lines.findIndex((line, index) => {
    if (index < start) return false;
    for (const character of line) open += Number('([{'.includes(character)) - Number(')]}'.includes(character));
    return open === 0;
  });
  return lines
    .slice(start, end + 1)
    .map((line) => line.slice(indentation))
    .join('\n');
}
