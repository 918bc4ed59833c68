import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Test, type TestingModule } from '@nestjs/testing';
import { type LimitDefinition, LimiterService, RateLimitModule } from '../../../lib/index.js';
import { outcomeOf } from '../../support/limits/waiting.js';

const limits: Record<string, LimitDefinition> = {
  'token-bucket': { algo: 'token-bucket', rate: 1, interval: '1h' },
  'leaky-bucket': { algo: 'leaky-bucket', rate: 1, interval: '1h', queue: 3 },
  'fixed-window': { algo: 'fixed-window', rate: 1, interval: '1h' },
  concurrency: { algo: 'concurrency', limit: 1, ttl: '1h' },
  kept: { algo: 'gcra', rate: 4, burst: 4, interval: '1h', reserveFor: { critical: 0.5 } },
};

describe.each(Object.entries(limits))('calls that wait for a %s', (name, limit) => {
  let app: TestingModule;
  let service: LimiterService;
  const end = new AbortController();

  beforeEach(async () => {
    app = await Test.createTestingModule({
      imports: [RateLimitModule.forRoot({ define: { [name]: limit } })],
    }).compile();
    await app.init();
    service = app.get(LimiterService);
  });
  afterEach(() => app.close());

  async function waiting(key: string) {
    const limiter = service.for(name);
    const { quota } = await limiter.peek(key);
    for (let unit = 0; unit < quota; unit++) await limiter.consume(key);
    const outcomes = [1, 2].map(() => outcomeOf(limiter.acquire(key, { signal: end.signal })));
    await new Promise((resolve) => setImmediate(resolve));
    expect(outcomes).toEqual([{}, {}]);
    return outcomes;
  }

  it('go on once an allow list has their key, and the others wait', async () => {
    const [own, others] = [await waiting('tenant:acme'), await waiting('tenant:other')];
    await service.allow({ pattern: 'tenant:ac*' }, { limit: name });
    await new Promise((resolve) => setImmediate(resolve));
    expect(own).toMatchObject([{ value: { source: 'list' } }, { value: { source: 'list' } }]);
    expect(others).toEqual([{}, {}]);
  });

  it('are refused once a deny list has their key', async () => {
    const [own, others] = [await waiting('tenant:acme'), await waiting('tenant:other')];
    await service.deny({ identity: 'tenant:acme' });
    await new Promise((resolve) => setImmediate(resolve));
    const refusal = expect.stringContaining('a list denies the key');
    expect(own.map(({ reason }) => String(reason))).toEqual([refusal, refusal]);
    expect(others).toEqual([{}, {}]);
    // What they had reserved is there for others again.
    await service.unlist({ identity: 'tenant:acme' });
    const again = outcomeOf(service.for(name).acquire('tenant:acme', { signal: end.signal }));
    await new Promise((resolve) => setImmediate(resolve));
    expect(again).toEqual({});
  });
});
