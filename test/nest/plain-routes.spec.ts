import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, Get, type INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { RateLimit, RateLimitModule } from '../../lib/index.js';

/** The steps of the start that look at methods: documentation, interceptor, rules. */
const STEPS = 3;

@Controller('mixed')
class MixedController {
  @Get('plain')
  plain() {
    return 'plain';
  }

  @Get('limited')
  @RateLimit({ algo: 'fixed-window', rate: 1, interval: '1h' })
  limited() {
    return 'limited';
  }
}

describe('routes without limits', () => {
  let app: INestApplication | undefined;

  afterEach(async () => {
    jest.restoreAllMocks();
    await app?.close();
    app = undefined;
  });

  it('are read once at each step of the start, beside others that have limits', async () => {
    const reads = jest.spyOn(Reflect, 'getOwnMetadata');
    const testing = await Test.createTestingModule({
      imports: [RateLimitModule.forRoot({})],
      controllers: [MixedController],
    }).compile();
    app = testing.createNestApplication();
    await app.listen(0, '127.0.0.1');
    const plain: unknown = Reflect.get(MixedController.prototype, 'plain');
    const ofPlain = reads.mock.calls.filter(([key, target]) => key === 'nestjs-sluice:declared' && target === plain);
    expect(ofPlain.length).toBeGreaterThan(0);
    expect(ofPlain.length).toBeLessThanOrEqual(STEPS);

    const url = await app.getUrl();
    const statusOf = async (path: string) => (await fetch(`${url}/mixed/${path}`)).status;
    expect([await statusOf('plain'), await statusOf('plain')]).toEqual([200, 200]);
    expect([await statusOf('limited'), await statusOf('limited')]).toEqual([200, 429]);
  });
});
