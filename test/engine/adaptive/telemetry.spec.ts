import { describe, expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import {
  type DecisionEvent,
  type LimitDefinition,
  LimiterService,
  MemoryStore,
  RateLimitModule,
} from '../../../lib/index.js';
import { ManualClock } from '../../support/limits/stores.js';
import { OpenTelemetrySdk } from '../../storage/telemetry/open-telemetry-sdk.js';

const slots: LimitDefinition = { algo: 'adaptive', scope: 'instance', initial: 2, max: 2, priority: 'sheddable' };

describe('telemetry of an adaptive limit', () => {
  it('tells its limit, what is in flight, and what was shed', async () => {
    const sdk = new OpenTelemetrySdk().collectMetrics();
    const store = new MemoryStore({ clock: new ManualClock().now });
    const testing = await Test.createTestingModule({
      imports: [RateLimitModule.forRoot({ store, define: { slots } })],
    }).compile();
    testing.useLogger(false);
    await testing.init();
    const events: DecisionEvent[] = [];
    const service = testing.get(LimiterService);
    service.decisions$.subscribe((event) => events.push(event));
    const limiter = service.for('slots');
    const { lease } = await limiter.consume('global');
    expect(await limiter.consume('global')).toMatchObject({ allowed: false, quota: 2, inFlight: 1, remaining: 0 });
    const named = { 'nestjs_sluice.limit': 'slots' };
    const shed = { attributes: { ...named, 'nestjs_sluice.priority': 'sheddable' }, value: 1 };
    expect(await sdk.measured()).toMatchObject({
      'nestjs_sluice.adaptive.limit': [{ attributes: named, value: 2 }],
      'nestjs_sluice.adaptive.in_flight': [{ attributes: named, value: 1 }],
      'nestjs_sluice.adaptive.shed': [shed],
    });
    expect(events[1]).toMatchObject({ limit: 'slots', outcome: 'refused', priority: 'sheddable', inFlight: 1 });
    await lease!.release();
    expect((await sdk.measured())['nestjs_sluice.adaptive.in_flight']).toEqual([{ attributes: named, value: 0 }]);
    await testing.close();
    await store.close();
    await sdk.stop();
  });
});
