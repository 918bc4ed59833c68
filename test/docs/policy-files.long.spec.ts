import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Controller, type ExecutionContext, Get, Global, Injectable, Module } from '@nestjs/common';
import { Ajv } from 'ajv';
import { parse } from 'yaml';
import { type KeyResolver, RateLimit, RateLimitModule } from '../../lib/index.js';
import { runProgram } from '../cli/run-program.js';
import { ensureBuilt } from '../support/processes/built.js';
import { PACKAGE_FOLDER } from '../support/processes/npm.js';
import { untriedCode } from './rows.js';
import { TriedApp } from './tried-app.js';

const page = readFileSync(join(PACKAGE_FOLDER, 'docs/guides/policy-files.md'), 'utf8');
const block = (language: string) => new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, 'ms').exec(page)![1]!;
const example = block('yaml');

const home = process.cwd();
let folder: string;
let app: TriedApp | undefined;

beforeAll(async () => {
  await ensureBuilt();
  folder = mkdtempSync(join(tmpdir(), 'sluice-guide-'));
  writeFileSync(join(folder, 'limits.yaml'), example);
  writeFileSync(join(folder, 'wrong.yaml'), example.replace('rate: 200', 'rate: -1'));
  process.chdir(folder);
});
afterEach(async () => {
  await app?.close();
  app = undefined;
});
afterAll(() => {
  process.chdir(home);
  rmSync(folder, { recursive: true, force: true });
});

@Injectable()
class TenantKey implements KeyResolver {
  resolve(context: ExecutionContext) {
    const { headers } = context.switchToHttp().getRequest<{ headers: Record<string, string> }>();
    return `tenant:${headers['x-tenant']}`;
  }
}

@Controller()
class ApiController {
  @Get()
  @RateLimit('api')
  get() {}

  @Get('exports')
  @RateLimit('exports')
  exports() {}
}

@Injectable()
class Settings {
  load(name: string, options: { signal: AbortSignal }): Promise<object> {
    const limit = { algo: 'gcra', rate: 7, interval: '1m' };
    return Promise.resolve(options.signal.aborted ? {} : { [name]: { api: limit, exports: limit } });
  }
}

@Global()
@Module({ providers: [Settings], exports: [Settings] })
class SettingsModule {}

describe('the guide to policy files', () => {
  it('has an example that holds in the app of the example', async () => {
    const module = RateLimitModule.forRoot({
      define: { api: { algo: 'gcra', rate: 100, interval: '1m', key: TenantKey } }, // a KeyResolver of yours: 'tenant:acme'
      policy: { source: 'limits.yaml', watch: true },
    });
    app = await TriedApp.start({ imports: [module], controllers: [ApiController] });
    const { limiters } = app;
    const quota = async (key: string) => (await limiters.for('api').peek(key)).quota;
    expect(await Promise.all(['tenant:acme', 'tenant:other', 'tenant:trial', 'user:1'].map(quota))).toEqual([
      5000, 500, 500, 200,
    ]);
    expect((await limiters.for('exports').peek('user:1')).quota).toBe(10);
    const told = await limiters.getRate('api', { key: 'tenant:acme' });
    // { source: 'policy', policy: "limits.yaml:11:5 overrides.api['tenant:acme']", options: { rate: 5000, … }, … }
    expect(told).toMatchObject({
      source: 'policy',
      policy: "limits.yaml:11:5 overrides.api['tenant:acme']",
      options: { rate: 5000 },
    });
    expect(await limiters.getMode('api', { key: 'tenant:trial' })).toMatchObject({ mode: 'shadow', source: 'policy' });
    const policyOf = async (tenant: string) =>
      (await app!.get('/', { 'x-tenant': tenant })).headers.get('ratelimit-policy');
    expect(await policyOf('acme')).toContain('q=5000;');
    expect(await policyOf('other')).toContain('q=500;');
  });

  it('has a function that gives a policy', async () => {
    const module = RateLimitModule.forRootAsync({
      inject: [Settings],
      useFactory: (settings: Settings) => ({
        policy: { source: (signal) => settings.load('limits', { signal }), watch: true, every: '30s' },
      }),
    });
    app = await TriedApp.start({ imports: [SettingsModule, module], controllers: [ApiController] });
    expect((await app.limiters.for('api').peek('user:1')).quota).toBe(7);
  });

  it('has an example that its schema allows and the program finds right', async () => {
    const schema = JSON.parse(readFileSync(join(PACKAGE_FOLDER, 'limits.schema.json'), 'utf8')) as object;
    expect(new Ajv({ allowUnionTypes: true }).validate(schema, parse(example))).toBe(true);
    expect(example).toContain('/node_modules/nestjs-sluice/limits.schema.json');
    const command = /npx nestjs-sluice (.*)/.exec(block('sh'))![1]!.split(' ');
    expect(await runProgram(command, { cwd: folder })).toEqual({
      code: 0,
      stdout: 'limits.yaml: ok (limits: 2, overrides: 3, lists: 0)\n',
      stderr: '',
    });
  });

  it('has further examples that hold in an app with their limits', async () => {
    const further = [...page.matchAll(/^```yaml\n(.*?)^```/gms)].slice(1).map(([, text]) => parse(text!) as object);
    const schema = JSON.parse(readFileSync(join(PACKAGE_FOLDER, 'limits.schema.json'), 'utf8')) as object;
    const isValid = new Ajv({ allowUnionTypes: true }).compile(schema);
    const limit = { algo: 'gcra', rate: 100, interval: '1m' } as const;
    const define = { api: limit, login: limit, search: limit, uploads: { ...limit, candidate: { rate: 20 } } };
    for (const policy of further) {
      expect([policy, isValid(policy)]).toEqual([policy, true]);
      const module = RateLimitModule.forRoot({ define, policy: { source: () => policy } });
      await (await TriedApp.start({ imports: [module] })).close();
    }
    expect(further.length).toBeGreaterThan(0);
  });

  it('shows the error of a wrong file', async () => {
    const module = RateLimitModule.forRoot({ policy: { source: 'wrong.yaml' } });
    const error = await TriedApp.start({ imports: [module] }).then(
      () => '',
      (reason: Error) => reason.message,
    );
    expect(`${error.replace('wrong', 'limits')}\n`).toBe(block('text'));
  });

  it('is code that runs, word for word', () => {
    expect(untriedCode('docs/guides/policy-files.md', 'test/docs/policy-files.long.spec.ts', 'started')).toEqual([]);
  });

  it('is where the README sends its readers', () => {
    expect(readFileSync(join(PACKAGE_FOLDER, 'README.md'), 'utf8')).toContain('](docs/guides/policy-files.md)');
  });
});
