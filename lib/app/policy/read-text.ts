import { extname } from 'node:path';
import { policyMessages } from '../../engine/errors/messages/rates.js';
import type { Located } from './located.js';
import type { Problems } from './problems.js';
import { parseYaml } from './yaml-value.js';

/** The maximum file size. The YAML parser handles the file synchronously, which blocks the process for 0.4 to 1 second at this size. */
export const MOST_BYTES = 512 * 1024;

const ENDINGS: readonly string[] = ['.yaml', '.yml', '.json'];

/** Returns true if a file has an extension of policy files. */
export function isPolicyPath(path: string): boolean {
  return ENDINGS.includes(extname(path).toLowerCase());
}

/** Parses a file as YAML or JSON. Returns `undefined` if it is neither, and reports the problems. */
export async function readText(name: string, bytes: Buffer, problems: Problems): Promise<Located | undefined> {
  const whole = { name, path: '' };
  if (bytes.length > MOST_BYTES) {
    problems.add(whole, policyMessages.tooLarge(MOST_BYTES));
    return undefined;
  }
  const text = decoded(bytes);
  if (text === undefined) {
    problems.add(whole, policyMessages.notText());
    return undefined;
  }
  const isJson = extname(name).toLowerCase() === '.json';
  // `JSON.parse` doesn't report lines, so the YAML parser reads JSON as well.
  const value = await parseYaml(name, text, isJson, problems);
  const wrong = isJson && value !== undefined ? jsonError(text) : undefined;
  if (wrong === undefined) return value;
  const line = wrong.offset === undefined ? {} : positionOf(text, wrong.offset);
  problems.add({ ...whole, ...line }, policyMessages.notJson(wrong.reason));
  return undefined;
}

/** The text without a byte order mark. */
function decoded(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function jsonError(text: string): { reason: string; offset: number | undefined } | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    const { message } = error as Error;
    const [, offset] = /at position (\d+)/.exec(message) ?? [];
    return { reason: message.replace(/ ?\(line.*\)$/, ''), offset: offset === undefined ? undefined : Number(offset) };
  }
}

function positionOf(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset).split('\n');
  return { line: before.length, column: before.at(-1)!.length + 1 };
}
