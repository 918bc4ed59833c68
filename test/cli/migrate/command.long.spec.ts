import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from '@jest/globals';
import { runHere, runProgram } from '../run-program.js';
import { ensureBuilt } from '../../support/processes/built.js';
import { PACKAGE_FOLDER } from '../../support/processes/npm.js';
import { AppFolder } from './moved-apps.js';

const { version: VERSION } = JSON.parse(readFileSync(join(PACKAGE_FOLDER, 'package.json'), 'utf8')) as {
  version: string;
};
const MODULE = `import { Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler';

@Module({
  imports: [ThrottlerModule.forRoot([{ ttl: 60_000, limit: 100 }])], // all routes
  providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
})
export class AppModule {}
`;
const CONTROLLER = `import { Controller, Get } from '@nestjs/common';
import { InjectThrottlerStorage, ThrottlerStorage } from '@nestjs/throttler';

@Controller()
export class AppController {
  constructor(@InjectThrottlerStorage() private readonly storage: ThrottlerStorage) {}

  @Get()
  all() {
    return this.storage.increment('a', 1000, 1, 0, 'default');
  }
}
`;
const MANIFEST = `{
  "name": "app",
  "files": ["dist", "docs"],
  "dependencies": {
    "@nestjs/common": "^11.0.0",
    "@nestjs/throttler": "^6.4.0",
    "rxjs": "^7.8.0"
  }
}
`;
const APP = { 'package.json': MANIFEST, 'src/app.module.ts': MODULE };

let folder: AppFolder | undefined;
afterEach(() => {
  folder?.remove();
  folder = undefined;
});
const start = (files: Readonly<Record<string, string>>) => (folder = new AppFolder(files));

/** A Prettier that breaks lines at semicolons only, and notes which files it got. */
const PRETTIER = `const isFormatted = (text) => text.includes('// formatted');
module.exports = {
  resolveConfig: async () => ({ semi: true }),
  getFileInfo: async (path, { ignorePath }) => ({ ignored: path.includes('generated') && ignorePath.endsWith('.prettierignore') }),
  check: async (text, { endOfLine }) => endOfLine === 'lf' && isFormatted(text),
  format: async (text, { filepath, semi }) => text + '// by prettier: ' + filepath.split('/').pop() + ' ' + semi + '\\n',
};
`;

describe('migrate', () => {
  it('formats files with the Prettier of the project that it had formatted', async () => {
    const app = start({
      ...APP,
      'src/formatted.module.ts': `// formatted\n${MODULE}`,
      'src/lines.module.ts': `// formatted\n${MODULE}`.replaceAll('\n', '\r\n'),
      'src/generated.module.ts': `// formatted\n${MODULE}`,
      'node_modules/prettier/index.js': PRETTIER,
    });
    const { code, stderr } = await app.migrate();
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(app.files()['src/formatted.module.ts']).toMatch(
      /RateLimitModule[^]*\/\/ by prettier: formatted\.module\.ts true\n$/,
    );
    expect(app.files()['src/lines.module.ts']).toMatch(
      /RateLimitModule[^]*\r\n\/\/ by prettier: lines\.module\.ts true\r\n$/,
    );
    for (const path of ['src/app.module.ts', 'src/generated.module.ts']) {
      expect(app.files()[path]).toContain('RateLimitModule');
      expect(app.files()[path]).not.toContain('by prettier');
    }
  });

  it('says what it changed, and edits only that', async () => {
    const app = start(APP);
    const { code, stdout, stderr } = await app.migrate();
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toBe(`Changed 3 places in 2 files:
  package.json:4 adds nestjs-sluice, removes @nestjs/throttler: install dependencies again
  src/app.module.ts:6 ThrottlerModule.forRoot -> RateLimitModule.forRoot
  src/app.module.ts:7 APP_GUARD ThrottlerGuard -> the module's own guard
Next: install dependencies, format, compile, and run your tests.
`);
    expect(app.files()).toEqual({
      'package.json': MANIFEST.replace('    "@nestjs/throttler": "^6.4.0",\n', `    "nestjs-sluice": "^${VERSION}",\n`),
      'src/app.module.ts': `import { Module } from '@nestjs/common';
import { RateLimitModule } from 'nestjs-sluice';

@Module({
  imports: [RateLimitModule.forRoot({
    headers: 'legacy',
    body: (_context, _result, { message }) => ({ statusCode: 429, message }),
    defaults: { message: 'ThrottlerException: Too Many Requests' },
    limits: [{ name: 'default', algo: 'sliding-log', interval: '1m', rate: 100, blockFor: '1m', perRoute: true }],
  })], // all routes
})
export class AppModule {}
`,
    });
  });

  it('changes nothing in a second run, and says so', async () => {
    const app = start(APP);
    await app.migrate();
    const after = app.files();
    expect(await app.migrate()).toEqual({ code: 0, stdout: 'Nothing to convert.\n', stderr: '' });
    expect(app.files()).toEqual(after);
  });

  it('prints a diff that git can apply, and writes nothing, with --dry-run', async () => {
    const app = start(APP);
    const { code, stdout } = await app.migrate('--dry-run');
    expect(code).toBe(0);
    expect(app.files()).toEqual(APP);
    const end = stdout.indexOf('Would change 3 places in 2 files:\n');
    expect(end).toBeGreaterThan(0);
    app.write('changes.diff', stdout.slice(0, end));
    execFileSync('git', ['apply', 'changes.diff'], { cwd: app.path });
    const { 'changes.diff': _, ...applied } = app.files();
    app.write('package.json', MANIFEST);
    app.write('src/app.module.ts', MODULE);
    await app.migrate();
    const { 'changes.diff': __, ...migrated } = app.files();
    expect(applied).toEqual(migrated);
  });

  it('removes the packages of both libraries, in one change of package.json', async () => {
    const app = start({
      ...APP,
      'package.json': MANIFEST.replace(
        '"@nestjs/throttler"',
        '"rate-limiter-flexible": "^5.0.0",\n    "@nestjs/throttler"',
      ),
      'src/login.service.ts': `import { Injectable } from '@nestjs/common';
import { RateLimiterMemory } from 'rate-limiter-flexible';

@Injectable()
export class LoginService {
  readonly limiter = new RateLimiterMemory({ points: 5, duration: 60 });
}
`,
    });
    const { stdout } = await app.migrate();
    expect(stdout).toMatch(/package.json:\d+ adds nestjs-sluice, removes @nestjs\/throttler, rate-limiter-flexible:/);
    expect(stdout).not.toContain('import RateLimitModule.forRoot');
    expect(app.files()['package.json']).not.toMatch(/throttler|rate-limiter-flexible/);
  });

  it('lists what it left, why, and what to do, and keeps the package that this needs', async () => {
    const app = start({ ...APP, 'src/app.controller.ts': CONTROLLER });
    const { stdout } = await app.migrate();
    expect(stdout).toContain(`Left 2 places for you:
  src/app.controller.ts:6 InjectThrottlerStorage stays: use @InjectLimiter(name), or LimiterService
  src/app.controller.ts:6 ThrottlerStorage stays: use the option 'redis', or 'store' with a class that implements Store
`);
    expect(app.files()['src/app.controller.ts']).toBe(CONTROLLER);
    expect(app.files()['package.json']).toContain(
      `"@nestjs/throttler": "^6.4.0",\n    "nestjs-sluice": "^${VERSION}",\n`,
    );
  });

  it.each([
    [
      "throwThrottlingException(): Promise<void> {\n    throw new ThrottlerException('Of the guard');",
      "'Of the guard'",
    ],
    [
      'throwThrottlingException(): Promise<void> {\n    throw new ThrottlerException();',
      "'ThrottlerException: Too Many Requests'",
    ],
    ["getErrorMessage(): Promise<string> {\n    return 'Of the guard';", "'Of the guard'"],
  ])('prefers what a guard says to the message of the module: %s', async (method, message) => {
    const guard = `import { Injectable } from '@nestjs/common';
import { ThrottlerException, ThrottlerGuard } from '@nestjs/throttler';

@Injectable()
export class OwnGuard extends ThrottlerGuard {
  protected async ${method}
  }
}
`;
    const module = MODULE.replace(
      '[{ ttl: 60_000, limit: 100 }]',
      "{ throttlers: [{ ttl: 60_000, limit: 100 }], errorMessage: 'Of the module' }",
    )
      .replace('import { ThrottlerGuard,', "import { OwnGuard } from './own.guard';\nimport {")
      .replace('useClass: ThrottlerGuard', 'useClass: OwnGuard');
    const app = start({ ...APP, 'src/app.module.ts': module, 'src/own.guard.ts': guard });
    await app.migrate();
    expect(app.files()['src/app.module.ts']).toContain(`defaults: { message: ${message} }`);
  });

  it('keeps the line ends of a file', async () => {
    const app = start({ ...APP, 'src/app.module.ts': MODULE.replaceAll('\n', '\r\n') });
    await app.migrate();
    const text = app.files()['src/app.module.ts']!;
    expect(text).toContain("limits: [{ name: 'default'");
    expect(text.replaceAll('\r\n', '')).not.toMatch(/[\r\n]/);
  });

  it('names what it does not look into, intervals of functions, and a second module', async () => {
    const second = MODULE.replace('ttl: 60_000', 'ttl: () => 60_000');
    const app = start({ ...APP, 'src/b.module.ts': second, 'src/a.ts': "export * from '@nestjs/throttler';\n" });
    const { stdout } = await app.migrate();
    expect(stdout).toContain("src/a.ts:1 only 'import { … } from' @nestjs/throttler is converted");
    expect(stdout).toContain(
      'src/b.module.ts:6 RateLimitModule is set up once for an app, and that is done at src/app.module.ts:6',
    );
    expect(stdout).toContain("src/b.module.ts:6 'ttl' is a function");
    expect(app.files()['src/b.module.ts']).toContain(
      "interval: '1m' /* TODO(nestjs-sluice): was a function */, rate: 100",
    );
  });

  it('says which routes of skipped classes are limited now', async () => {
    const controller = `import { Controller, Get } from '@nestjs/common';
import { SkipThrottle, Throttle } from '@nestjs/throttler';

@SkipThrottle({ short: true })
@Controller()
export class AppController {
  @Throttle({ short: { limit: 5 } })
  @Get()
  all() {}

  @Throttle({ long: { limit: 5 } })
  @Get('one')
  one() {}

  @SkipThrottle({ short: false })
  @Get('two')
  two() {}
}
`;
    const throttlers = "[{ name: 'short', ttl: 1000, limit: 3 }, { name: 'long', ttl: 60_000, limit: 9 }]";
    const app = start({
      ...APP,
      'src/app.module.ts': MODULE.replace('[{ ttl: 60_000, limit: 100 }]', throttlers),
      'src/app.controller.ts': controller,
    });
    const { stdout } = await app.migrate();
    expect(stdout).toContain(
      'Left 1 place for you:\n  src/app.controller.ts:7 the class was skipped, and this route with it',
    );
    const text = app.files()['src/app.controller.ts'];
    expect(text).toContain(
      "@RateLimit({ name: 'short', algo: 'sliding-log', rate: 5, interval: '1s', blockFor: '1s' })",
    );
    expect(text).toContain(
      "@RateLimit({ name: 'short', algo: 'sliding-log', rate: 3, interval: '1s', blockFor: '1s' })",
    );
  });

  it('converts the paths that it is given, and nothing of node_modules', async () => {
    const app = start({ ...APP, 'other/app.module.ts': MODULE, 'src/node_modules/a/index.ts': MODULE });
    await app.migrate('src');
    expect(app.files()['other/app.module.ts']).toBe(MODULE);
    expect(app.files()['src/node_modules/a/index.ts']).toBe(MODULE);
    expect(app.files()['src/app.module.ts']).toContain('RateLimitModule');
    // The other app needs it still.
    expect(app.files()['package.json']).toContain('@nestjs/throttler');
  });

  it('refuses a git work tree with changes, unless it is forced to', async () => {
    const app = start(APP);
    const git = (...args: string[]) => execFileSync('git', args, { cwd: app.path });
    git('init', '-q');
    const { code, stdout, stderr } = await app.migrate();
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/^nestjs-sluice migrate: .* has uncommitted changes\. Commit them first, /);
    expect(app.files()).toEqual(APP);
    expect((await app.migrate('--dry-run')).code).toBe(0);
    git('add', '.');
    git('-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '-qm', 'All');
    expect((await app.migrate('--dry-run')).code).toBe(0);
    expect((await app.migrate()).code).toBe(0);
    expect((await app.migrate()).code).toBe(1);
    expect((await app.migrate('--force')).code).toBe(0);
  });

  it.each([
    [['--from', 'express'], "--from: expected one of throttler, rate-limiter-flexible, received 'express'"],
    [['--force', '--force'], '--force: the option is given twice. Give it once'],
  ])('exits with 2 for %j', async (args, message) => {
    const app = start(APP);
    const { code, stdout, stderr } = await app.migrate(...args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toBe(`nestjs-sluice migrate: ${message}\nsee nestjs-sluice migrate --help\n`);
  });

  it('exits with 1 for a path that is not there', async () => {
    const { code, stderr } = await start(APP).migrate('none');
    expect(code).toBe(1);
    expect(stderr).toBe("nestjs-sluice migrate: 'none' does not exist. Pass a file or a folder\n");
  });

  it('converts from one package only with --from', async () => {
    const app = start(APP);
    expect((await app.migrate('--from', 'rate-limiter-flexible')).stdout).toBe('Nothing to convert.\n');
    expect((await app.migrate('--from', 'throttler')).stdout).toContain('Changed 3 places');
  });

  it('says what it does with --help', async () => {
    expect((await runHere(['migrate', '--help'])).stdout).toMatch(
      /^Usage: nestjs-sluice migrate \[options\] \[path\.\.\.\]\n/,
    );
  });
});

describe('the compiler of a project', () => {
  it('is version 5 or 6; version 7 alone has no API', async () => {
    await ensureBuilt();
    const app = start(APP);
    mkdirSync(join(app.path, 'node_modules'));
    symlinkSync(join(PACKAGE_FOLDER, 'node_modules/@typescript/native'), join(app.path, 'node_modules/typescript'));
    // The built program of this folder finds the compiler beside itself, as with `npx -p typescript@5`.
    const { code, stdout } = await runProgram(['migrate', '--dry-run'], { cwd: app.path });
    expect(code).toBe(0);
    expect(stdout).toContain('Would change 3 places');
  });
});
