import { afterEach, expect, it, jest } from '@jest/globals';
import { Controller, Get, Injectable, Logger, Module, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import type { Subscription } from 'rxjs';
import { type DecisionEvent, LimiterService, RateLimitModule } from '../../lib/index.js';
import { untriedCode } from './rows.js';
import { TriedApp } from './tried-app.js';

/** Numbers of checked and rejected requests. */
class Tally {
  asked = 0;
  refused = 0;

  get share() {
    return `${((100 * this.refused) / Math.max(1, this.asked)).toFixed(1)} %`;
  }
}

/** What a limit and its candidate said, and whom the candidate would have refused how often. */
class Comparison {
  readonly limit = new Tally();
  readonly candidate = new Tally();
  readonly hit = new Map<string, number>();
}

@Injectable()
export class CandidateReport implements OnModuleInit, OnModuleDestroy {
  private readonly log = new Logger('Candidates');
  private readonly comparisons = new Map<string, Comparison>();
  private subscription?: Subscription;
  private timer?: NodeJS.Timeout;

  constructor(private readonly limiters: LimiterService) {}

  onModuleInit() {
    this.subscription = this.limiters.decisions$.subscribe((event) => this.add(event));
    this.timer = setInterval(() => this.report(), 60_000);
  }

  onModuleDestroy() {
    clearInterval(this.timer);
    this.subscription?.unsubscribe();
  }

  private add({ limit, identity, outcome, candidate = false }: DecisionEvent) {
    const comparison = this.comparisons.get(limit) ?? new Comparison();
    this.comparisons.set(limit, comparison);
    const tally = candidate ? comparison.candidate : comparison.limit;
    tally.asked++;
    if (outcome === 'allowed') return;
    tally.refused++;
    const { hit } = comparison;
    if (candidate && (hit.has(identity) || hit.size < 10_000)) hit.set(identity, (hit.get(identity) ?? 0) + 1);
  }

  report() {
    for (const [name, { limit, candidate, hit }] of this.comparisons) {
      if (candidate.asked === 0) continue;
      const worst = [...hit].sort(([, one], [, other]) => other - one).slice(0, 3);
      const keys = worst.map(([identity, times]) => `${identity} (${times})`).join(', ') || 'nobody';
      this.log.log(`candidate of ${name} would refuse ${candidate.share} (the limit: ${limit.share}): ${keys}`);
    }
    this.comparisons.clear();
  }
}

@Controller()
class ApiController {
  @Get()
  get() {
    return 'ok';
  }
}

@Module({
  imports: [
    RateLimitModule.forRoot({
      limits: [{ name: 'api', algo: 'token-bucket', rate: 100, interval: '1m', candidate: { rate: 60 } }],
    }),
  ],
  controllers: [ApiController],
  providers: [CandidateReport],
})
class AppModule {}

let app: TriedApp;
afterEach(async () => {
  jest.restoreAllMocks();
  await app.close();
});

it('the report of the guide says what a candidate would refuse, and whom', async () => {
  app = await TriedApp.start({ imports: [AppModule] });
  const lines = jest.spyOn(Logger.prototype, 'log').mockImplementation(() => undefined);
  const api = app.limiters.for({
    name: 'api',
    algo: 'token-bucket',
    rate: 100,
    interval: '1m',
    candidate: { rate: 60 },
  });
  for (let call = 0; call < 66; call++) await api.consume('tenant:acme');
  for (let call = 0; call < 62; call++) await api.consume('tenant:other');
  const report = app.nest.get(CandidateReport);
  report.report();
  report.report();
  const [[line] = ['']] = lines.mock.calls;
  expect(lines).toHaveBeenCalledTimes(1);
  expect(line).toMatch(
    /^candidate of api would refuse 6\.3 % \(the limit: 0\.0 %\): [\w-]{16} \(6\), [\w-]{16} \(2\)$/,
  );
});

it('the calls of the guide change candidates, and end them', async () => {
  app = await TriedApp.start({ imports: [AppModule] });
  const { limiters } = app;
  const quotas: number[] = [];
  limiters.decisions$.subscribe(({ quota }) => quotas.push(quota));
  await app.get();
  await limiters.setRate('api', { candidate: { rate: 40 } }); // another candidate; works also if the limit has none
  await app.get();
  await limiters.setRate('api', { rate: 60, candidate: null }); // enforced, without a candidate
  const { headers } = await app.get();
  expect(quotas).toEqual([100, 60, 100, 40, 60]);
  expect(headers.get('ratelimit-policy')).toBe('"api";q=60;w=60');
});

it('is the code of the guide, word for word', async () => {
  app = await TriedApp.start({ imports: [AppModule] });
  const spec = 'test/docs/candidates.long.spec.ts';
  expect(untriedCode('docs/guides/candidates.md', spec, 'started')).toEqual([]);
  expect(untriedCode('docs/reference/candidates.md', spec)).toEqual([]);
});
