/** A note about a change at some place, or about the reason why nothing was changed. */
export interface Note {
  readonly path: string;
  readonly line: number;
  readonly text: string;
}

/** The notes as lines, in the order of files. */
export function linesOf(notes: readonly Note[]): string[] {
  return notes
    .toSorted((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : a.line - b.line))
    .map(({ path, line, text }) => `  ${path}:${line} ${text}`);
}

const CONTEXT = 3;

/** A unified diff of two texts; empty if they are equal. The second text may be `undefined`. */
export function unifiedDiff(path: string, before: string, after: string | undefined): string {
  if (before === after) return '';
  const [old, made] = [splitLines(before), splitLines(after ?? '')];
  const steps = stepsOf(old, made);
  const hunks: string[] = [];
  for (let at = 0; at < steps.length;) {
    if (steps[at]!.kind === ' ') {
      at++;
      continue;
    }
    const start = Math.max(0, at - CONTEXT);
    let end = at;
    for (let next = at, same = 0; next < steps.length && same <= 2 * CONTEXT; next++) {
      same = steps[next]!.kind === ' ' ? same + 1 : 0;
      if (same === 0) end = next + 1;
    }
    const shown = steps.slice(start, Math.min(steps.length, end + CONTEXT));
    const [first] = shown as [Step];
    const olds = shown.filter(({ kind }) => kind !== '+').length;
    const news = shown.filter(({ kind }) => kind !== '-').length;
    hunks.push(`@@ -${first.old + 1},${olds} +${after === undefined ? 0 : first.made + 1},${news} @@`);
    hunks.push(...shown.map(({ kind, line }) => kind + line));
    at = end + CONTEXT;
  }
  return `--- a/${path}\n+++ ${after === undefined ? '/dev/null' : `b/${path}`}\n${hunks.join('\n')}\n`;
}

function splitLines(text: string): string[] {
  const lines = text.split('\n');
  const last = lines.pop()!;
  return last === '' ? lines : [...lines, `${last}\n\\ No newline at end of file`];
}

interface Step {
  readonly kind: ' ' | '-' | '+';
  readonly line: string;
  readonly old: number;
  readonly made: number;
}

/** The shortest way from one list of lines to another, by their longest common subsequence. */
function stepsOf(old: readonly string[], made: readonly string[]): Step[] {
  let same = 0;
  while (same < old.length && same < made.length && old[same] === made[same]) same++;
  let tail = 0;
  while (tail < old.length - same && tail < made.length - same && old.at(-1 - tail) === made.at(-1 - tail)) tail++;
  const [rows, columns] = [old.length - same - tail, made.length - same - tail];
  const width = columns + 1;
  const lengths = new Uint32Array((rows + 1) * width);
  for (let i = rows - 1; i >= 0; i--) {
    for (let j = columns - 1; j >= 0; j--) {
      lengths[i * width + j] =
        old[same + i] === made[same + j]
          ? lengths[(i + 1) * width + j + 1]! + 1
          : Math.max(lengths[(i + 1) * width + j]!, lengths[i * width + j + 1]!);
    }
  }
  const steps: Step[] = [];
  const add = (kind: Step['kind'], i: number, j: number): void => {
    steps.push({ kind, line: kind === '+' ? made[j]! : old[i]!, old: i, made: j });
  };
  for (let i = 0; i < same; i++) add(' ', i, i);
  let [i, j] = [0, 0];
  while (i < rows || j < columns) {
    if (i < rows && j < columns && old[same + i] === made[same + j]) add(' ', same + i++, same + j++);
    else if (i < rows && (j === columns || lengths[(i + 1) * width + j]! >= lengths[i * width + j + 1]!)) {
      add('-', same + i++, same + j);
    } else add('+', same + i, same + j++);
  }
  for (let k = 0; k < tail; k++) add(' ', old.length - tail + k, made.length - tail + k);
  return steps;
}
