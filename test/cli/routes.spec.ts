import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import ts from 'typescript';
import { ensureBuilt } from '../support/processes/built.js';
import { PACKAGE_FOLDER } from '../support/processes/npm.js';
import { runProgram } from './run-program.js';

/** An app whose database cannot be reached, and whose limits need its configuration. */
const SOURCES = {
  'main.ts': `import 'reflect-metadata';
import { VersioningType } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AppModule, Settings } from './app.module.js';

async function bootstrap() {
  const app = await NestFactory.create(AppModule);
  app.setGlobalPrefix(app.get(Settings).prefix, { exclude: ['health'] });
  app.enableVersioning({ type: VersioningType.URI });
  await app.listen(app.get(Settings).port);
  console.log('it listens');
}
await bootstrap().catch(() => process.exit(3));
`,
  'by-header.ts': `import 'reflect-metadata';
import { VersioningType } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';

const app = await NestFactory.create(AppModule);
app.enableVersioning({ type: VersioningType.HEADER, header: 'X-Version' });
await app.listen(0);
`,
  'early.ts': `import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { AppModule, OrdersController } from './app.module.js';

async function bootstrap() {
  await Promise.resolve();
  const app = await NestFactory.create(AppModule);
  app.get(OrdersController).find().ready();
  app.setGlobalPrefix('api');
  await app.listen(0);
}
bootstrap();
`,
  'helped.ts': `import 'reflect-metadata';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';

@Injectable()
class ConfigService {
  readonly prefix = 'configured';
}
@Module({ providers: [ConfigService] })
class ConfigModule {}

const context = await NestFactory.createApplicationContext(ConfigModule);
const app = await NestFactory.create(AppModule);
app.setGlobalPrefix(context.get(ConfigService).prefix);
await context.close();
await app.listen(0);
`,
  'app.module.ts': `import { Controller, Get, Injectable, Module, Post } from '@nestjs/common';
import { RouterModule } from '@nestjs/core';
import { Limited, RateLimit, RateLimitModule, SkipRateLimit } from 'nestjs-sluice';

@Injectable()
export class Settings {
  readonly rate = 10;
  readonly port = 0;
  readonly prefix = 'api';
}
@Module({ providers: [Settings], exports: [Settings] })
class SettingsModule {}

@Injectable()
class Database {
  constructor() {
    console.log('it connects');
  }
  onModuleInit() {
    console.log('it runs');
  }
}

@Controller({ path: 'orders', version: '1' })
export class OrdersController {
  constructor(private readonly database: Database) {}

  @Get(':id')
  @RateLimit('api')
  find() {
    return this.database;
  }

  @Post()
  async create() {
    return this.database;
  }

  @Limited('api', { key: (id: string) => id })
  @Limited({ algo: 'gcra', rate: 1, interval: '1s', mode: 'shadow' })
  @Post(':id')
  async change() {
    return this.database;
  }
}

@Controller('health')
@SkipRateLimit({ because: 'the load balancer polls it' })
class HealthController {
  @Get()
  check() {}
}

@Module({ controllers: [OrdersController], providers: [Database, Settings] })
class OrdersModule {}

@Module({
  imports: [
    RateLimitModule.forRootAsync({
      imports: [SettingsModule],
      inject: [Settings],
      useFactory: ({ rate }: Settings) => ({
        redis: 'redis://127.0.0.1:1',
        define: { api: { algo: 'gcra', rate, interval: '1s', key: 'user' } },
      }),
    }),
    SettingsModule,
    OrdersModule,
    RouterModule.register([{ path: 'shop', module: OrdersModule }]),
  ],
  controllers: [HealthController],
})
export class AppModule {}
`,
  'wrong.module.ts': `import { Module } from '@nestjs/common';
import { RateLimitModule } from 'nestjs-sluice';

@Module({ imports: [RateLimitModule.forRoot({ policy: { source: 'wrong.json' } })] })
export class AppModule {}
`,
};

let folder: string;
beforeAll(async () => {
  await ensureBuilt();
  // Within the package, so that the app finds it by its name.
  folder = await mkdtemp(join(PACKAGE_FOLDER, 'build', 'routes-'));
  await mkdir(join(folder, 'dist'));
  for (const [name, source] of Object.entries(SOURCES)) {
    const { outputText, sourceMapText } = ts.transpileModule(source, {
      fileName: name,
      compilerOptions: {
        module: ts.ModuleKind.ESNext,
        target: ts.ScriptTarget.ES2022,
        experimentalDecorators: true,
        emitDecoratorMetadata: true,
        sourceMap: true,
      },
    });
    const built = join(folder, 'dist', name.replace(/ts$/, 'js'));
    const map = JSON.parse(sourceMapText!) as { sources: string[] };
    await writeFile(built, outputText);
    await writeFile(`${built}.map`, JSON.stringify({ ...map, sources: [`../src/${name}`] }));
  }
}, 120_000);
afterAll(() => rm(folder, { recursive: true, force: true }));

const lineOf = (name: keyof typeof SOURCES, text: string) =>
  SOURCES[name].split('\n').findIndex((line) => line.includes(text)) + 1;

describe('routes', () => {
  it('lists the routes of the start file with their limits, and runs nothing of the app', async () => {
    const { code, stdout, stderr } = await runProgram(['routes'], { cwd: folder });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout.replaceAll(/ {2,}/g, '  ')).toBe(
      [
        'http  POST /api/v1/shop/orders  OrdersController.create  NO LIMIT',
        'http  GET /api/v1/shop/orders/:id  OrdersController.find',
        '  api: key user; phase authenticated; @RateLimit on OrdersController.find, define.api',
        'http  POST /api/v1/shop/orders/:id  OrdersController.change',
        '  api: key a function; @Limited on OrdersController.change, define.api',
        '  gcra:1/1s: key global; mode shadow; @Limited on OrdersController.change',
        'http  GET /health  HealthController.check',
        '  @SkipRateLimit() on HealthController: the load balancer polls it',
        '',
        '4 routes, 1 without a limit',
        '',
      ].join('\n'),
    );
  });

  it('fails for those without a limit, with file and line, and writes them for code scanning', async () => {
    const { code, stdout, stderr } = await runProgram(
      ['routes', '--fail-unlimited', '--json', '--sarif', 'found.sarif'],
      {
        cwd: folder,
      },
    );
    const line = lineOf('app.module.ts', 'async create()');
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: `src/app.module.ts:${line}: POST /api/v1/shop/orders (OrdersController.create) has no limit\n`,
    });
    expect(JSON.parse(stdout)).toMatchObject({
      unlimited: 1,
      routes: [
        { handler: 'create', limits: [], unlimited: true },
        { kind: 'http', file: 'src/app.module.ts', line: lineOf('app.module.ts', 'find()'), unlimited: false },
        { handler: 'change', file: 'src/app.module.ts', line: lineOf('app.module.ts', 'async change()') },
        { route: 'GET /health', because: 'the load balancer polls it', unlimited: false },
      ],
    });
    const sarif = JSON.parse(await readFile(join(folder, 'found.sarif'), 'utf8')) as { runs: { results: unknown[] }[] };
    expect(sarif.runs[0]!.results).toEqual([
      expect.objectContaining({
        ruleId: 'route-without-rate-limit',
        locations: [
          expect.objectContaining({
            physicalLocation: { artifactLocation: { uri: 'src/app.module.ts' }, region: { startLine: line } },
          }),
        ],
      }),
    ]);
  });

  it('names versions that are not in the path', async () => {
    const { code, stdout, stderr } = await runProgram(['routes', 'dist/by-header.js', '--fail-unlimited'], {
      cwd: folder,
    });
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(/: POST \/shop\/orders version 1 \(OrdersController\.create\) has no limit\n$/),
    });
    expect(stdout).toContain('GET /shop/orders/:id version 1');
    expect(stdout).toMatch(/GET \/health  +HealthController/);
  });

  it('reads a module without its start file', async () => {
    const { code, stdout, stderr } = await runProgram(['routes', 'dist/app.module.js#AppModule', '--json'], {
      cwd: folder,
    });
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr:
        'dist/app.module.js is a module without its start file: a prefix and versions that main.js sets are missing in the paths\n',
    });
    const { routes } = JSON.parse(stdout) as { routes: { route: string }[] };
    expect(routes.map(({ route }) => route)).toEqual([
      'GET /health',
      'POST /shop/orders',
      'GET /shop/orders/:id',
      'POST /shop/orders/:id',
    ]);
  });

  it('lists the routes of a start file that needs what was not created, and says what is missing', async () => {
    const { code, stdout, stderr } = await runProgram(['routes', 'dist/early.js', '--json'], { cwd: folder });
    expect(stderr).toMatch(
      /^dist\/early\.js failed after it had created the app, .*: Cannot read properties of undefined/,
    );
    const { routes } = JSON.parse(stdout) as { routes: { route: string }[] };
    expect([code, routes.map(({ route }) => route)]).toEqual([
      0,
      ['GET /health', 'POST /shop/orders', 'GET /shop/orders/:id', 'POST /shop/orders/:id'],
    ]);
  });

  it('lists the routes of a start file that reads its configuration from another app', async () => {
    const { code, stdout, stderr } = await runProgram(['routes', 'dist/helped.js', '--json'], { cwd: folder });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const { routes } = JSON.parse(stdout) as { routes: { route: string }[] };
    expect(routes[0]!.route).toBe('GET /configured/health');
  });

  it('lists the problems of a policy file line by line', async () => {
    await writeFile(join(folder, 'wrong.json'), '{ "limits": {\n"a": { "rate": 0 },\n"b": { "rate": 0 } } }');
    const { code, stdout, stderr } = await runProgram(['routes', 'dist/wrong.module.js'], { cwd: folder });
    expect([code, stdout]).toEqual([1, '']);
    const [first, ...others] = stderr.split('\n');
    expect(first).toMatch(/cannot be started: the policy has 2 problems:$/);
    expect(others).toEqual([
      expect.stringMatching(/^ {2}wrong\.json:2:\d+ limits\.a\.rate: expected/),
      expect.stringMatching(/^ {2}wrong\.json:3:\d+ limits\.b\.rate: expected/),
      '',
    ]);
  });

  it.each([
    [['dist/none.js'], 1, /the module 'dist\/none\.js' cannot be loaded/],
    [['dist/app.module.js#Other'], 1, /exports no class 'Other', expected one of/],
    [['dist/app.module.js#OrdersController'], 1, /the app has no RateLimitModule|cannot be started/],
    [['one.js', 'two.js'], 2, /unexpected argument 'two\.js'/],
  ])('%j is refused', async (args, expected, message) => {
    const { code, stdout, stderr } = await runProgram(['routes', ...args], { cwd: folder });
    expect({ code, stdout }).toEqual({ code: expected, stdout: '' });
    expect(stderr).toMatch(message);
  });
});
