import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type TS from 'typescript';
import type { Compiler } from './compiler.js';
import { Edits } from './edits.js';

const KINDS = ['dependencies', 'devDependencies', 'peerDependencies', 'optionalDependencies'];

/** A change of a package.json: its text before and after. */
export interface ManifestChange {
  readonly path: string;
  readonly before: string;
  readonly after: string;
  readonly line: number;
}

/** Adds a dependency and removes others, as text, so that the rest is unchanged. */
export function changedManifest(
  ts: Compiler,
  root: string,
  added: readonly [name: string, range: string] | undefined,
  removed: readonly string[],
): ManifestChange | undefined {
  const path = join(root, 'package.json');
  const before = readFileSync(path, 'utf8');
  const file = ts.parseJsonText(path, before);
  const top = file.statements[0]?.expression;
  if (top === undefined || !ts.isObjectLiteralExpression(top)) return undefined;
  const edits = new Edits(before);
  let line = 1;
  let hasAdded = false;
  const sections = top.properties.flatMap((property) => {
    const section = ts.isPropertyAssignment(property) ? property.initializer : undefined;
    const name = property.name !== undefined && ts.isStringLiteral(property.name) ? property.name.text : '';
    return KINDS.includes(name) && section !== undefined && ts.isObjectLiteralExpression(section)
      ? [{ name, section }]
      : [];
  });
  if (added !== undefined)
    hasAdded = sections.some(({ section }) => section.properties.some((p) => nameOf(p) === added[0]));
  for (const { name, section } of sections) {
    const entries = [...section.properties];
    const kept = entries.filter((property) => !removed.includes(nameOf(property)));
    const isHost = added !== undefined && !hasAdded && name === 'dependencies';
    if (kept.length === entries.length && !isHost) continue;
    const texts = new Map(kept.map((property) => [nameOf(property), property.getText(file)]));
    if (isHost) texts.set(added[0], `"${added[0]}": "${added[1]}"`);
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
  if (added !== undefined && !hasAdded) {
    const first = top.properties.at(-1);
    const entry = `"dependencies": {\n    "${added[0]}": "${added[1]}"\n  }`;
    if (first !== undefined) edits.insert(first.end, `,\n  ${entry}`);
  }
  const after = edits.render();
  return after === before ? undefined : { path, before, after, line };
}

function nameOf(property: TS.ObjectLiteralElementLike): string {
  return (property.name as TS.StringLiteral).text;
}
