import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { AppFolder, compilerErrors, type Files, usesOf } from './moved-apps.js';
import { throttledApps, type ThrottledApp } from './throttled-apps.js';

const PACKAGES = /throttler/;

/** All files of an application as it stands. */
function filesOf({ version, files, packages }: ThrottledApp): Files {
  const dependencies = { '@nestjs/common': '^11.0.0', '@nestjs/throttler': version, ...packages };
  const sources = Object.entries(files).map(([name, text]) => [`src/${name}`, text]);
  return {
    'package.json': `${JSON.stringify({ name: 'app', dependencies }, null, 2)}\n`,
    ...Object.fromEntries(sources),
  };
}

describe('applications with @nestjs/throttler', () => {
  const moved: Record<string, { before: Files; after: Files; stdout: string; again: string; third: Files }> = {};

  beforeAll(async () => {
    for (const [name, app] of Object.entries(throttledApps)) {
      const before = filesOf(app);
      const folder = new AppFolder(before);
      const { stdout, stderr, code } = await folder.migrate();
      if (code !== 0) throw new Error(`${name}: ${stderr}`);
      const after = folder.files();
      const again = await folder.migrate();
      moved[name] = { before, after, stdout, again: again.stdout, third: folder.files() };
      folder.remove();
    }
  }, 240_000);

  afterAll(() => {
    if (process.env['SHOW_MOVED'] === undefined) return;
    for (const [name, { after, stdout }] of Object.entries(moved)) {
      const texts = Object.entries(after).map(([path, text]) => `--- ${path}\n${text}`);
      process.stdout.write(`\n======== ${name}\n${texts.join('\n')}\n${stdout}`);
    }
  });

  /** How often the applications name what the packages export. */
  function countOf(key: 'before' | 'after'): number {
    return Object.values(moved).reduce((sum, one) => sum + usesOf(one[key], PACKAGES), 0);
  }

  it('are twenty, and compile once they are moved', () => {
    expect(Object.keys(throttledApps)).toHaveLength(20);
    expect(compilerErrors(Object.fromEntries(Object.entries(moved).map(([name, { after }]) => [name, after])))).toEqual(
      [],
    );
  }, 240_000);

  it('have at least nine tenths of their uses converted', () => {
    expect(countOf('before')).toBeGreaterThan(100);
    expect(1 - countOf('after') / countOf('before')).toBeGreaterThanOrEqual(0.9);
  });

  it.each(Object.keys(throttledApps))('%s: a second run changes nothing', (name) => {
    expect(moved[name]!.third).toEqual(moved[name]!.after);
  });
});
