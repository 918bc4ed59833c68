import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';

const page = readFileSync('docs/versioning.md', 'utf8');
const { name, exports, engines, peerDependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as {
  name: string;
  exports: Record<string, unknown>;
  engines: { node: string };
  peerDependencies: Record<string, string>;
};
/** The cells beside each of the names in a row's first cell. */
const supported = new Map(
  [...page.matchAll(/^\| (.*?) +\| (.*?) +\|$/gm)].flatMap(([, what, versions]) =>
    [...what!.matchAll(/`([^`]+)`|^(Node)$/g)].map(([, quoted, plain]) => [quoted ?? plain!, versions!] as const),
  ),
);
const majorsOf = (range: string): string[] => [...range.matchAll(/[\^~](\d+)\./g)].map(([, major]) => major!);

describe('docs/versioning.md', () => {
  it('names every entry point, and no other', () => {
    const sentence = /^The entry points are (.*?)\.\n\n/ms.exec(page)![1]!;
    const wanted = Object.keys(exports).filter((entry) => !entry.endsWith('.json'));
    expect([...sentence.matchAll(/`([^`]+)`/g)].map(([, entry]) => entry)).toEqual(
      wanted.map((entry) => `${name}${entry.slice(1)}`),
    );
  });

  it('names the versions of Node that the package asks for', () => {
    const [, older, newer] = /^\^(\d+\.\d+)\.0 \|\| >=(\d+\.\d+)\.0$/.exec(engines.node)!;
    expect(supported.get('Node')).toContain(`from ${newer},`);
    expect(supported.get('Node')).toContain(`from ${older}`);
  });

  const clients = Object.entries(peerDependencies).filter(([peer]) => supported.has(peer));

  it.each(clients)('names the versions of %s that the package takes', (peer, range) => {
    expect([...supported.get(peer)!.matchAll(/\b\d+(?!\d*\.)(?<!\.\d+)\b/g)].map(([major]) => major)).toEqual(
      majorsOf(range),
    );
  });

  it('names versions of more than a handful of peers', () => {
    expect(clients.length).toBeGreaterThan(6);
  });
});
