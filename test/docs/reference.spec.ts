import { readFileSync } from 'node:fs';
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

/** A row of the benchmarks. */
const measured = (row: string) =>
  read('docs/benchmarks.md')
    .split('\n')
    .find((line) => line.startsWith(`| ${row}`))!;

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

  it('is short', () => expect(Buffer.byteLength(readme)).toBeLessThanOrEqual(15_000));

  it('begins with what to run in a clone', () => {
    const [, block] = /^```sh\n([^]*?)^```/m.exec(readme)!;
    expect(readme.indexOf('```')).toBe(readme.indexOf('```sh'));
    expect(block).toMatch(/^npm ci && npm run sample .*\nnpm ci && npm test /);
  });

  it('has the example of the page to start with', () => {
    const [, example] = /^```ts\n([^]*?)^```/m.exec(readme)!;
    expect(read('docs/start.md')).toContain(example);
  });

  it('links to every guide', () => {
    const guides = [...read('docs/index.md').matchAll(/\]\((guides\/[\w-]+\.md)\)/g)].map(([, path]) => path!);
    expect(guides.length).toBeGreaterThan(40);
    expect(guides.filter((path) => !readme.includes(`](docs/${path})`))).toEqual([]);
  });

  it('has figures of the benchmarks', () => {
    const [, ofApp, ofRedis] = /take ([\d.]+) times the app CPU and ([\d.]+)\stimes the Redis CPU/.exec(
      readme.replaceAll('\n', ' ').replaceAll(/ +/g, ' '),
    )!;
    expect(measured('Its own CPU a request, beyond the app without limits')).toContain(`${ofApp} x`);
    expect(measured('An app with 20 routes and two limits, 8 connections: Redis CPU a request')).toContain(
      `${ofRedis} x`,
    );
  });
});
