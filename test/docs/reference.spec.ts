import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import ts from 'typescript';
import * as publicNames from '../../lib/index.js';
import { Limiter, LimiterService } from '../../lib/index.js';
import { OutboundLimiter } from '../../lib/integrations/outbound/index.js';
import { PACKAGE_FOLDER } from '../support/processes/npm.js';

const read = (file: string): string => readFileSync(join(PACKAGE_FOLDER, file), 'utf8');
const reference = (page: string): string => read(`docs/reference/${page}.md`);

/** The properties of interfaces. */
function propertiesOf(file: string, ...interfaces: string[]): string[] {
  const source = ts.createSourceFile(file, read(file), ts.ScriptTarget.Latest, true);
  return source.statements
    .filter((node) => ts.isInterfaceDeclaration(node))
    .filter(({ name }) => interfaces.includes(name.text))
    .flatMap(({ members }) => members.flatMap(({ name }) => (name === undefined ? [] : [name.getText()])));
}

/** The code in the first cells of the tables of a part. */
function firstCells(part: string): string[] {
  const cells = [...part.matchAll(/^\|((?:[^|\\]|\\.)+)\|/gm)].map(([, cell]) => cell!);
  return cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, code]) => code!));
}

describe('the reference', () => {
  it('has all options of the module', () => {
    const options = [
      ...propertiesOf('lib/app/config/module-options.ts', 'RateLimitModuleOptions', 'RateLimitModuleSettings'),
      ...propertiesOf('lib/app/hooks/decision-hook.ts', 'DecisionHooksOptions'),
      'guard',
    ];
    const rows = firstCells(reference('module-options'));
    expect(options.length).toBeGreaterThan(30);
    expect(rows.toSorted()).toEqual([...new Set(options)].toSorted());
  });

  // Old names that still work are in the API report, and no longer in the reference.
  const report = readFileSync('test/package/api/nestjs-sluice.api.md', 'utf8');
  const deprecated = [...report.matchAll(/@deprecated [^*]*\*\/\n +(\w+)\(/g)].map(([, call]) => call!);

  it.each([
    ['Limiter', Limiter.prototype, ['rule', 'refuseHeld']],
    ['LimiterService', LimiterService.prototype, ['declared', 'lazily', 'ofRule', 'fetch', 'axios', 'dispatcher']],
    ['OutboundLimiter', OutboundLimiter.prototype, ['caller', 'rules']],
  ] as const)('has all calls of %s', (name, prototype, internal: readonly string[]) => {
    const part = reference('calls').split(`## \`${name}\`\n`)[1]!.split('\n## ')[0]!;
    const listed = firstCells(part).flatMap((code) => /^\w+\$?/.exec(code) ?? []);
    const calls = Object.getOwnPropertyNames(prototype).filter((call) => call !== 'constructor');
    const left = new Set([...internal, ...deprecated]);
    const wanted = calls.filter((call) => !left.has(call) && !call.startsWith('on'));
    expect(listed.filter((call) => call !== 'decisions$').toSorted()).toEqual(wanted.toSorted());
  });

  it('has all errors', () => {
    const errors = Object.keys(publicNames).filter((name) => /^RateLimit.*(?:Error|Exception)$/.test(name));
    expect(
      firstCells(reference('errors'))
        .filter((name) => name.startsWith('RateLimit'))
        .toSorted(),
    ).toEqual(errors.toSorted());
  });
});

describe('the README', () => {
  const readme = read('README.md');

  it('is short', () => expect(Buffer.byteLength(readme)).toBeLessThanOrEqual(9_000));

  it('shows code after 60 words', () => {
    const [before] = readme.split('```');
    expect(before!.split(/\s+/).length).toBeLessThanOrEqual(60);
    expect(readme.split('\n').findIndex((line) => line.startsWith('```ts'))).toBeLessThan(15);
  });

  it('says what to run in a clone', () => {
    expect(readme).toContain('`npm ci && npm run sample`');
    expect(readme).toContain('`npm ci && npm test`');
  });

  it('has the example and the response of the page to start with', () => {
    const blocks = readme.match(/^```[^]*?^```/gm)!;
    const response = blocks.find((block) => block.includes('$ curl -i'));
    for (const block of [blocks[0], response]) expect(read('docs/start.md')).toContain(block);
  });

  it('leads to every guide in two clicks', () => {
    expect(readme).toContain('](docs/index.md)');
    const index = read('docs/index.md');
    const guides = readdirSync(join(PACKAGE_FOLDER, 'docs/guides'));
    expect(guides.length).toBeGreaterThan(40);
    expect(guides.filter((name) => !index.includes(`](guides/${name})`))).toEqual([]);
  });

  it('has figures of the benchmarks', () => {
    const [, shared, quiet] = /With 256 checks in flight, it decides ([\d.]+) to ([\d.]+) times/.exec(
      readme.replaceAll(/\s+/g, ' '),
    )!;
    const row = read('docs/benchmarks.md')
      .split('\n')
      .find((line) => line.startsWith('| one limit, 10,000 keys, 256 in flight '))!;
    expect(row.match(/[\d.]+(?= ×)/g)).toEqual([quiet, shared]);
  });
});
