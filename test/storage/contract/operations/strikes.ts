import { describe, expect, it } from '@jest/globals';
import { CompiledLimit } from '../../../../lib/testing/store/index.js';
import { blocked, everyAlgorithm, five, HOUR, identity, PENALTY } from './limits.js';
import type { OperationsStage } from './stage.js';

const MINUTE = 60_000;

export function strikesContract(stage: OperationsStage): void {
  const { at, take, peek, reserve, block, unblock } = stage;

  describe('tries during a block that prolong it', () => {
    describe.each(everyAlgorithm)('%s', (algo) => {
      const limit = new CompiledLimit(five[algo], {
        location: 'test',
        name: 'struck',
        blockFor: PENALTY * 1000,
        strikes: true,
      });
      const steps = [MINUTE, 10 * MINUTE].map((ms) => ms * 1000);
      const stepwise = new CompiledLimit(five[algo], {
        location: 'test',
        name: 'stepwise',
        escalation: { steps, forgetAfter: HOUR * 1000 },
        strikes: true,
      });

      it('lasts until a key has made none for so long', async () => {
        await take(limit, 5);
        for (const ms of [0, 1, 30_000, 100_000]) {
          at(ms);
          await expect(take(limit)).resolves.toMatchObject(blocked(PENALTY));
        }
        at(100_000 + PENALTY - 1);
        await expect(peek(limit)).resolves.toMatchObject(blocked(1));
        at(100_000 + PENALTY);
        await expect(take(limit)).resolves.toMatchObject({ allowed: true, remaining: 4 });
      });

      it('is no offence, and lasts as long as the last one says', async () => {
        await take(stepwise, 5);
        for (const ms of [0, 30_000, 60_000]) {
          at(ms);
          await expect(take(stepwise)).resolves.toMatchObject({ ...blocked(MINUTE), offences: 1 });
        }
        at(2 * MINUTE);
        await take(stepwise, 5);
        await expect(take(stepwise)).resolves.toMatchObject({ ...blocked(10 * MINUTE), offences: 2 });
        at(3 * MINUTE);
        await expect(take(stepwise)).resolves.toMatchObject({ ...blocked(10 * MINUTE), offences: 2 });
      });

      it('is no try to look, to reserve, or to ask for nothing', async () => {
        await take(limit, 5);
        await take(limit);
        at(30_000);
        await peek(limit);
        await reserve(limit);
        await take(limit, 0);
        await stage.store.check([{ entries: [{ limit, identity, cost: 1 }], hold: true, refundable: true }]);
        await expect(peek(limit)).resolves.toMatchObject(blocked(PENALTY - 30_000));
      });

      it('never shortens a block, and ends with it', async () => {
        await block(limit, HOUR);
        at(1000);
        await expect(take(limit)).resolves.toMatchObject(blocked(HOUR - 1000));
        at(HOUR - 1000);
        await expect(take(limit)).resolves.toMatchObject(blocked(PENALTY));
        await unblock(limit);
        await expect(take(limit)).resolves.toMatchObject({ allowed: true, remaining: 4 });
      });

      it('counts a check that takes what is there as a try', async () => {
        await take(limit, 5);
        await take(limit);
        at(30_000);
        const checks = [{ entries: [{ limit, identity, cost: 3 }], upTo: true }];
        await expect(stage.store.check(checks)).resolves.toMatchObject([[{ ...blocked(PENALTY), taken: 0 }]]);
      });
    });
  });
}
