import { afterEach, describe, expect, it } from '@jest/globals';
import { type CanActivate, type ExecutionContext, type INestApplication, Injectable } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { DocumentBuilder, SwaggerModule } from '@nestjs/swagger';
import { Test } from '@nestjs/testing';
import {
  type Explanation,
  formatExplanation,
  LimiterService,
  type ModuleLimit,
  RateLimitModule,
} from '../../../lib/index.js';
import { ConsoleApp } from '../../console/console-app.js';
import { HttpApp } from '../../e2e/http-app.js';
import { until } from '../../support/time/until.js';
import { OpenController } from './dynamic-app.js';

const minute = { algo: 'fixed-window', interval: '1m', key: 'global' } as const;
const chosen: ModuleLimit = () => ({ ...minute, name: 'chosen', rate: 5 });
const rated: ModuleLimit = { ...minute, rate: () => 7 };
const limits = [chosen, { ...minute, name: 'fixed', rate: 9 }, rated];

let app: { close(): Promise<unknown> } | undefined;
afterEach(async () => {
  await app?.close();
  app = undefined;
});

it('the OpenAPI document has their refusals', async () => {
  const imports = [RateLimitModule.forRootAsync({ useFactory: () => ({ limits: [chosen] }) })];
  const testing = await Test.createTestingModule({ imports, controllers: [OpenController] }).compile();
  const nest: INestApplication = testing.createNestApplication();
  app = nest;
  const document = SwaggerModule.createDocument(nest, new DocumentBuilder().build());
  await nest.init();
  expect(Object.keys(document.paths['/open']!.get!.responses)).toContain('429');
});

describe('explanations', () => {
  it('of a request say what functions returned, and where they are', async () => {
    let explained: Explanation | undefined;
    @Injectable()
    class ExplainingGuard implements CanActivate {
      constructor(private readonly service: LimiterService) {}

      async canActivate(context: ExecutionContext) {
        explained = await this.service.explain(context);
        return true;
      }
    }
    const providers = [{ provide: APP_GUARD, useClass: ExplainingGuard }];
    const started = await HttpApp.start('express', { controllers: [OpenController], providers, limits: { limits } });
    app = started;
    expect((await started.get('/open')).status).toBe(200);
    const { functions, limits: shown } = explained!;
    expect(functions).toEqual([
      { origin: { level: 'module', location: 'limits[0]' }, asked: true, gave: ['chosen'] },
      { origin: { level: 'module', location: 'limits[2]' }, asked: true, gave: ['fixed-window:dynamic/1m:global'] },
    ]);
    expect(shown.map(({ name, origin }) => [name, origin.location, origin.byFunction])).toEqual([
      ['fixed', 'limits[1]', undefined],
      ['chosen', 'limits[0]', true],
      ['fixed-window:dynamic/1m:global', 'limits[2]', true],
    ]);
    expect(formatExplanation(explained!)).toMatch(/limits\[2\].*fixed-window:dynamic\/1m:global/);
  });
});

it('the console counts what they decide under their names', async () => {
  const console = await ConsoleApp.start({ limits: { limits }, controllers: [OpenController] });
  app = console;
  await fetch(`${console.url}/open`);
  expect(console.console.session.limits.map(({ name }) => name)).toEqual(['fixed', 'things']);
  let counted: string[] = [];
  await until(async () => (counted = Object.keys((await console.overview()).totals)).length > 0);
  expect(counted.toSorted()).toEqual(['chosen', 'fixed', 'fixed-window:dynamic/1m:global']);
});
