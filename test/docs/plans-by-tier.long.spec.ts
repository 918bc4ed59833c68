import 'reflect-metadata';
import { afterEach, describe, expect, it } from '@jest/globals';
import {
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  type INestApplication,
  Injectable,
  Module,
  Post,
} from '@nestjs/common';
import { APP_GUARD, NestFactory, Reflector } from '@nestjs/core';
import {
  type LimiterService,
  type LimitFunction,
  type LimitResolver,
  rateLimitMiddleware,
  RateLimitModule,
  type RateLimitModuleOptions,
} from '../../lib/index.js';
import { reported } from '../app/rules/dynamic-app.js';
import { untriedCode } from './rows.js';
import { TriedApp } from './tried-app.js';

type Category = 'trigger' | 'configuration' | 'global';
type Tier = 'free' | 'business' | 'unlimited';

interface Caller {
  headers: Record<string, string | undefined>;
  user?: { organization: string; tier: Tier };
}

// requests a second, by tier and category
const RATES: Record<Tier, Record<Category, number> | null> = {
  free: { trigger: 60, configuration: 20, global: 30 },
  business: { trigger: 600, configuration: 200, global: 300 },
  unlimited: null,
};
const COSTS = { single: 1, bulk: 100 };

const CategoryOf = Reflector.createDecorator<Category>();
const CostOf = Reflector.createDecorator<keyof typeof COSTS>();
const reflector = new Reflector();

const requestOf = (context: ExecutionContext) => context.switchToHttp().getRequest<Caller>();
const organizationOf = (context: ExecutionContext) => requestOf(context).user?.organization;

const byTier: LimitFunction = (context) => {
  const places = [context.getHandler(), context.getClass()];
  const category = reflector.getAllAndOverride(CategoryOf, places) ?? 'global';
  const cost = COSTS[reflector.getAllAndOverride(CostOf, places) ?? 'single'];
  const rates = RATES[requestOf(context).user?.tier ?? 'free'];
  if (rates === null) return null; // no limit
  const rate = rates[category];
  return { name: category, algo: 'token-bucket', rate, interval: '1s', burst: 10 * rate, cost, key: organizationOf };
};

@Controller('events')
@CategoryOf('trigger')
class EventsController {
  @Post('trigger')
  trigger() {}

  @Post('trigger/bulk')
  @CostOf('bulk')
  bulk() {}
}

@Controller('workflows')
@CategoryOf('configuration')
class WorkflowsController {
  @Get()
  list() {}
}

// replace this with your database: the organization of each API key, and its tier
const ORGANIZATIONS = new Map<string, { organization: string; tier: Tier }>([
  ['key-of-acme', { organization: 'acme', tier: 'business' }],
  ['key-of-bob', { organization: 'bob', tier: 'free' }],
]);

// looks up the tier by API key; never trust a tier that the client sends
@Injectable()
class ApiKeyGuard implements CanActivate {
  canActivate(context: ExecutionContext) {
    const user = ORGANIZATIONS.get(requestOf(context).headers['x-api-key'] ?? '');
    if (user === undefined) return false; // unknown key
    requestOf(context).user = user;
    return true;
  }
}

@Module({
  imports: [
    RateLimitModule.forRoot({
      redis: 'redis://localhost:6379',
      limits: [{ name: 'flood', algo: 'gcra', rate: 1_000, interval: '1s' }, byTier],
    }),
  ],
  controllers: [EventsController, WorkflowsController],
  providers: [{ provide: APP_GUARD, useClass: ApiKeyGuard }],
})
class AppModule {}

async function bootstrap() {
  const app = await NestFactory.create(AppModule);
  await app.listen(3000);
}

const start = () => void bootstrap();
void start;

/** Gives what a guide gives to the module. */
function optionsOf(use: (module: { forRoot: (options: RateLimitModuleOptions) => void }) => void) {
  let given: RateLimitModuleOptions = {};
  use({ forRoot: (options) => void (given = options) });
  return given;
}

const perSecond = { free: 5, business: 50, unlimited: null };

const byRate = optionsOf((RateLimitModule) => {
  RateLimitModule.forRoot({
    limits: [
      {
        name: 'api',
        algo: 'gcra',
        interval: '1s',
        key: organizationOf,
        rate: (context) => perSecond[requestOf(context).user?.tier ?? 'free'],
      },
    ],
  });
});

const byPrefix = optionsOf((RateLimitModule) => {
  RateLimitModule.forRoot({
    limits: [
      {
        name: 'api',
        algo: 'gcra',
        rate: 5,
        interval: '1s',
        phase: 'authenticated', // after the guards that find the user
        key: (context) => {
          const { organization, tier } = requestOf(context).user!;
          return `${tier}:${organization}`;
        },
      },
    ],
  });
});

async function override(limiters: LimiterService): Promise<void> {
  await limiters.setRate('api', { rate: 50 }, { key: 'business:*' });
  await limiters.setRate('api', { rate: 500 }, { key: 'business:acme', expiresIn: '2d', by: 'eva' }); // one customer
  await limiters.setMode('api', 'off', { key: 'unlimited:*' });
}

/** Stands for a database. */
@Injectable()
class PlanRepository {
  static isDown = false;
  static queries = 0;
  static ofAcme = 50;

  async of(organization: string | undefined): Promise<{ rate: number }> {
    PlanRepository.queries += 1;
    if (PlanRepository.isDown) throw new Error('no connection');
    return { rate: organization === 'acme' ? PlanRepository.ofAcme : 5 };
  }
}

@Injectable()
class PlanLimits implements LimitResolver {
  readonly ttl = '1m';
  readonly maxKeys = 10_000;
  readonly fallback = 'fewest';

  constructor(private readonly plans: PlanRepository) {}

  keyOf(context: ExecutionContext) {
    return organizationOf(context);
  }

  async resolve(_context: ExecutionContext, organization: string | undefined) {
    const { rate } = await this.plans.of(organization);
    return { name: 'plan', algo: 'gcra', rate, interval: '1s', key: organizationOf } as const;
  }
}

@Module({
  imports: [
    RateLimitModule.forRoot({
      limits: [PlanLimits],
      define: { fewest: { algo: 'gcra', rate: 1, interval: '1s', key: organizationOf } },
    }),
  ],
  providers: [PlanRepository, PlanLimits],
})
class PlansModule {}

const addressesFirst = optionsOf((RateLimitModule) => {
  RateLimitModule.forRoot({
    limits: [{ name: 'addresses', algo: 'gcra', rate: 20, interval: '1s', phase: 'middleware' }, PlanLimits],
  });
});

function useMiddleware(app: INestApplication): void {
  app.use(rateLimitMiddleware(app)); // in main.ts
}

function upgrade(limiters: LimiterService): void {
  limiters.forgetResolved(PlanLimits, 'acme'); // LimiterService; without a key, all rates are read again
}

let app: TriedApp | undefined;
afterEach(async () => {
  await app?.close();
  app = undefined;
  PlanRepository.isDown = false;
  PlanRepository.ofAcme = 50;
});

/** Keys such as `a.free`, of the organization `a` and its tier. */
for (const organization of ['a', 'b', 'c', 'acme']) {
  for (const tier of ['free', 'business', 'unlimited'] as const) {
    ORGANIZATIONS.set(`${organization}.${tier}`, { organization, tier });
  }
}

const as = (key: string) => ({ 'x-api-key': key });
const others = {
  controllers: [EventsController, WorkflowsController],
  providers: [{ provide: APP_GUARD, useClass: ApiKeyGuard }],
};
const withLimits = ({ limits = [] }: RateLimitModuleOptions) =>
  TriedApp.start({ ...others, imports: [RateLimitModule.forRoot({ limits })] });

describe('the guide of plans by tier', () => {
  it('counts by category, cost and tier', async () => {
    app = await TriedApp.start({ imports: [AppModule] });
    const post = async (path: string, key: string) => reported(await app!.post(path, {}, as(key)));
    expect(await post('/events/trigger', 'a.free')).toEqual([
      ['flood', 1000, 999],
      ['trigger', 600, 599],
    ]);
    expect(await post('/events/trigger/bulk', 'a.free')).toContainEqual(['trigger', 600, 499]);
    expect(reported(await app.get('/workflows', as('a.free')))).toContainEqual(['configuration', 200, 199]);
    expect(await post('/events/trigger', 'b.business')).toContainEqual(['trigger', 6000, 5999]);
    expect((await post('/events/trigger', 'c.unlimited')).map(([name]) => name)).toEqual(['flood']);
    const statuses = [];
    for (let call = 0; call < 5; call++)
      statuses.push((await app.post('/events/trigger/bulk', {}, as('a.free'))).status);
    expect(statuses).toEqual([201, 201, 201, 201, 429]);
    // An upgrade keeps what was used.
    expect(await post('/events/trigger', 'a.business')).toContainEqual(['trigger', 6000, 98]);
  });

  it('takes no tier from requests', async () => {
    app = await withLimits(byRate);
    const statusOf = async (key: string) => (await app!.get('/workflows', as(key))).status;
    expect([await statusOf('key-of-bob'), await statusOf('bob.unlimited'), await statusOf('')]).toEqual([
      200, 403, 403,
    ]);
    expect(reported(await app.get('/workflows', as('key-of-bob')))).toEqual([['api', 5, 3]]);
  });

  it('has a rate for each tier', async () => {
    app = await withLimits(byRate);
    const ask = async (key: string) => reported(await app!.get('/workflows', as(key)));
    expect([await ask('a.free'), await ask('b.business'), await ask('c.unlimited')]).toEqual([
      [['api', 5, 4]],
      [['api', 50, 49]],
      [],
    ]);
  });

  it('names a limit without a name by its key', async () => {
    const [{ name: _, ...limit }] = byRate.limits as unknown as [{ name: string }];
    app = await withLimits({ limits: [limit as never] });
    expect(reported(await app.get('/workflows', as('a.free')))).toEqual([['gcra:dynamic/1s:custom', 5, 4]]);
  });

  it('reads rates from a database', async () => {
    app = await TriedApp.start({ ...others, imports: [PlansModule] });
    const ask = async (key: string) => reported(await app!.get('/workflows', as(key)));
    expect([await ask('acme.free'), await ask('b.free')]).toEqual([[['plan', 50, 49]], [['plan', 5, 4]]]);
    PlanRepository.isDown = true;
    expect([await ask('acme.free'), await ask('c.free')]).toEqual([[['plan', 50, 48]], [['fewest', 1, 0]]]);
  });

  it('reads the rate of a customer again who upgrades', async () => {
    app = await TriedApp.start({ ...others, imports: [PlansModule] });
    const ask = async () => reported(await app!.get('/workflows', as('acme.free')));
    await ask();
    PlanRepository.ofAcme = 60;
    expect(await ask()).toEqual([['plan', 50, 48]]);
    upgrade(app.limiters);
    expect(await ask()).toEqual([['plan', 60, 57]]);
  });

  it('queries the database for no more keys than addresses may send', async () => {
    const { limits = [] } = addressesFirst;
    const define = { fewest: { algo: 'gcra', rate: 1, interval: '1s', key: organizationOf } } as const;
    const imports = [RateLimitModule.forRoot({ limits, define })];
    const providers = [...others.providers, PlanRepository, PlanLimits];
    app = await TriedApp.start({ ...others, imports, providers }, { configure: useMiddleware });
    PlanRepository.queries = 0;
    const statuses = [];
    for (let request = 0; request < 25; request++) {
      ORGANIZATIONS.set(`made-up-${request}`, { organization: `made-up-${request}`, tier: 'free' });
      statuses.push((await app.get('/workflows', as(`made-up-${request}`))).status);
    }
    expect([statuses.filter((status) => status === 429).length, PlanRepository.queries]).toEqual([5, 20]);
  });

  it('overrides rates by prefix', async () => {
    app = await withLimits(byPrefix);
    await override(app.limiters);
    const ask = async (key: string) => reported(await app!.get('/workflows', as(key)));
    expect([
      await ask('a.free'),
      await ask('b.business'),
      await ask('acme.business'),
      await ask('c.unlimited'),
    ]).toEqual([[['api', 5, 4]], [['api', 50, 49]], [['api', 500, 499]], []]);
  });

  it('has all of its code here', () => {
    for (const page of ['docs/guides/plans-by-tier.md', 'docs/reference/limit-functions.md'])
      expect(untriedCode(page, 'test/docs/plans-by-tier.long.spec.ts', 'started')).toEqual([]);
  });
});
