import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { PACKAGE_FOLDER } from '../support/processes/npm.js';

const LIB = join(PACKAGE_FOLDER, 'lib');
const FOLDER = join(LIB, 'engine', 'errors', 'messages');

describe('the messages of the package', () => {
  const topics = readdirSync(FOLDER);

  it('have different names in all topics', () => {
    const exported = topics.flatMap((file) =>
      [...readFileSync(join(FOLDER, file), 'utf8').matchAll(/^export const (\w+)/gm)].map(([, name]) => String(name)),
    );
    expect(exported).toContain('messages');
    expect(exported.length).toBeGreaterThanOrEqual(topics.length);
    expect(exported).toEqual([...new Set(exported)]);
  });

  it('stand in that folder, or in the one of their feature or variant', () => {
    const files = readdirSync(LIB, { recursive: true, encoding: 'utf8' }).map((file) => file.replaceAll('\\', '/'));
    const elsewhere = files.filter((file) => file.endsWith('messages.ts'));
    expect(
      elsewhere.filter((file) => !/^(storage\/features|engine\/algorithms)\/[a-z-]+\/messages\.ts$/.test(file)),
    ).toEqual([]);
  });

  it('stand nowhere else as literals of an error', () => {
    const files = readdirSync(LIB, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
    const literals = files.filter((file) =>
      /(?:new RateLimit\w*(?:Error|Exception)\(|(?:config|argument)Error\([^,]*,)\s*['"`]/.test(
        readFileSync(join(LIB, file), 'utf8'),
      ),
    );
    expect(files.length).toBeGreaterThan(100);
    expect(literals).toEqual([]);
  });
});
