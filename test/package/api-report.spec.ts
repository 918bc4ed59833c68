import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { apiReports, REPORTS } from '../../bundle/api-report.mjs';
import { ensureBuilt } from '../support/processes/built.js';
import { PACKAGE_FOLDER } from '../support/processes/npm.js';

const DIST = join(PACKAGE_FOLDER, 'dist');
const MAIN = 'nestjs-sluice.api.md';

describe('the reports of public names', () => {
  let reports: Map<string, string>;

  beforeAll(async () => {
    await ensureBuilt();
    reports = apiReports();
  });

  it('are those of the build (if the change is meant, `npm run build:api` writes them anew)', () => {
    const committed = readdirSync(REPORTS).map((name) => [name, readFileSync(join(REPORTS, name), 'utf8')]);
    expect(Object.fromEntries(reports)).toEqual(Object.fromEntries(committed));
  });

  it('are one for each entry point', () => {
    const { exports } = JSON.parse(readFileSync(join(PACKAGE_FOLDER, 'package.json'), 'utf8')) as { exports: object };
    const entries = Object.keys(exports).filter((name) => !name.endsWith('.json'));
    const names = entries.map((name) => `nestjs-sluice${name.slice(1).replace('/', '.')}.api.md`);
    expect([...reports.keys()].toSorted()).toEqual(names.toSorted());
  });

  it('show what users compile against, and neither descriptions nor private members', () => {
    const report = reports.get(MAIN)!;
    expect(report).toContain('\n    check(checks: readonly LimitCheck[]): Promise<LeasedCheckResult>;\n');
    expect(report).toMatch(/\/\*\* @default [^*]+ \*\/\n +timeout\?: Duration;/);
    expect([...reports.values()].join('\n')).not.toContain('@deprecated');
    expect(report).not.toMatch(/^ +(?:private|#)/m);
    expect(report).not.toContain('Takes units');
  });

  it('say of what another entry point exports where it stands', () => {
    expect(reports.get('nestjs-sluice.store.api.md')).toContain("export { Decision } from 'nestjs-sluice';");
    expect(reports.get('nestjs-sluice.store.api.md')).not.toMatch(/^interface Decision /m);
  });

  it.each([
    ['a signature', 'nest.d.ts', 'check(checks: readonly LimitCheck[])', 'check(checks: LimitCheck[])', MAIN],
    ['an option', 'limiter.d.ts', 'signal?: AbortSignal', 'signal: AbortSignal', MAIN],
    ['a type without a public name', 'config.d.ts', 'interface ReturnedModuleOptions', 'interface Returned', MAIN],
    ['a default', 'testing.d.ts', '@default any wait', '@default 0', 'nestjs-sluice.testing.api.md'],
  ])('show a change of %s', (_what, file, before, after, report) => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-declarations-'));
    try {
      cpSync(DIST, folder, { recursive: true, filter: (path) => basename(path) !== 'cjs' && !path.endsWith('.js') });
      const path = join(folder, 'shared', file);
      const text = readFileSync(path, 'utf8');
      expect(text).toContain(before);
      writeFileSync(path, text.replaceAll(before, after));
      const changed = [...apiReports(folder)].filter(([name, each]) => each !== reports.get(name));
      expect(changed.map(([name]) => name)).toContain(report);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
