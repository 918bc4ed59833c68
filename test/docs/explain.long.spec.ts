import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import {
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  Header,
  Injectable,
  Logger,
  Module,
  Param,
  UseGuards,
} from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { formatExplanation, LimiterService, RateLimit, RateLimitModule, SkipRateLimit } from '../../lib/index.js';
import { PACKAGE_FOLDER } from '../support/processes/npm.js';
import { untriedCode } from './rows.js';
import { TriedApp } from './tried-app.js';
import { runHere } from '../cli/run-program.js';

const [page, reference] = ['docs/guides/explain.md', 'docs/reference/explain.md'].map((file) =>
  readFileSync(join(PACKAGE_FOLDER, file), 'utf8'),
) as [string, string];

@Controller('reports')
@RateLimit({ name: 'burst', algo: 'gcra', rate: 10, interval: '1s' })
export class ReportsController {
  @Get()
  @SkipRateLimit('hourly')
  @RateLimit('api', { name: 'burst', algo: 'gcra', rate: 2, interval: '1s' })
  list() {
    return [];
  }
}

@Injectable()
class AdminGuard implements CanActivate {
  canActivate() {
    return true;
  }
}

@Controller('admin/limits')
@UseGuards(AdminGuard) // your own guard: explanations contain keys and their use
export class ExplainController {
  constructor(private readonly limiters: LimiterService) {}

  @Get(':name/:key')
  @SkipRateLimit()
  @Header('content-type', 'text/plain')
  async explain(@Param('name') limit: string, @Param('key') key: string) {
    return formatExplanation(await this.limiters.explain({ limit, key }));
  }
}

@Injectable()
export class ExplainRefusals implements CanActivate {
  private readonly log = new Logger('Limits');

  constructor(private readonly limiters: LimiterService) {}

  async canActivate(context: ExecutionContext) {
    const explanation = await this.limiters.explain(context);
    if (explanation.outcome.verdict === 'refused') this.log.warn(formatExplanation(explanation));
    return true;
  }
}

@Module({ providers: [{ provide: APP_GUARD, useClass: ExplainRefusals }] })
class ModuleBefore {}

@Controller('explained')
class ExplainedController {
  @Get()
  @RateLimit('api')
  get() {
    return 'ok';
  }
}

const tenantOf = (context: ExecutionContext) =>
  context.switchToHttp().getRequest<{ headers: Record<string, string | undefined> }>().headers['x-tenant'];

let app: TriedApp;
afterEach(() => app.close());

async function start() {
  app = await TriedApp.start({
    imports: [
      ModuleBefore,
      RateLimitModule.forRoot({
        limits: [
          { name: 'hourly', algo: 'sliding-window', rate: 1_000, interval: '1h' },
          { name: 'burst', algo: 'gcra', rate: 50, interval: '1s' },
        ],
        define: { api: { algo: 'fixed-window', rate: 100, interval: '1m', key: tenantOf, onMissingKey: 'ip' } },
      }),
    ],
    controllers: [ReportsController, ExplainController, ExplainedController],
  });
  return app.limiters;
}

/** The text of the guide, in which versions of changes and ends of overrides are as they were when it was written. */
const blocks = [...page.matchAll(/^```text\n(.*?)^```/gms)].map(([, text]) => text);

describe('the guide to explanations', () => {
  it('shows what is written of a route', async () => {
    const limiters = await start();
    await limiters.setRate('api', { rate: 5 }, { key: 'tenant:*', by: 'eva', reason: 'abuse' });
    await limiters.for('api').consume('tenant:acme', 5);
    const explanation = await limiters.explain({
      controller: ReportsController, // or its name
      handler: 'list',
      key: { burst: 'ip:203.0.113.7', api: 'tenant:acme' },
    });
    expect(explanation.outcome).toEqual({ verdict: 'refused', refusedBy: ['api'], retryAfterMs: 60_000, delayMs: 0 });
    expect(formatExplanation(explanation)).toBe(blocks[0]);
  });

  it('has questions that are answered', async () => {
    const limiters = await start();
    const limit = await limiters.explain({ limit: 'api', key: 'tenant:acme' });
    const route = await limiters.explain({ controller: 'ReportsController', handler: 'list', key: 'ip:203.0.113.7' });
    expect([limit.outcome.verdict, route.outcome.verdict]).toEqual(['allowed', 'allowed']);
    const shown = await app.get('/admin/limits/api/tenant:acme');
    expect(await shown.text()).toMatch(/^limit 'api': allowed\n/);
  });

  it('has a guard that tells of what is refused, and of nothing else', async () => {
    const limiters = await start();
    await limiters.setRate('api', { rate: 2 });
    const warn = jest.spyOn(Logger.prototype, 'warn');
    try {
      expect(await app.statuses(3, '/explained')).toEqual([200, 200, 429]);
      expect(warn.mock.calls.map(([text]) => String(text).split('\n', 1)[0])).toEqual([
        "ExplainedController.get (http): refused by 'api', retry after 1 min",
      ]);
    } finally {
      warn.mockRestore();
    }
  });

  it('is the code that was tried, word for word', async () => {
    await start();
    const spec = 'test/docs/explain.long.spec.ts';
    const untried = ['docs/guides/explain.md', 'docs/reference/explain.md'].flatMap((file) =>
      untriedCode(file, spec, 'started'),
    );
    expect(untried.filter((piece) => !piece.startsWith('import'))).toEqual([]);
  });

  it('names every option of the command, and no other', async () => {
    await start();
    const { stdout } = await runHere(['explain', '--help']);
    const options = [...stdout.matchAll(/^ {2}(--[a-z-]+)/gm)].map(([, option]) => option!);
    expect(options.length).toBeGreaterThan(10);
    const named = [...(page + reference).matchAll(/(?<![\w-])(--[a-z]+)/g)].map(([, option]) => option!);
    expect(options.filter((option) => option !== '--help' && !named.includes(option))).toEqual([]);
    expect(named.filter((option) => !options.includes(option))).toEqual([]);
  });
});
