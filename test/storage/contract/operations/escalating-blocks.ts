import { describe, expect, it } from '@jest/globals';
import type { Decision } from '../../../../lib/index.js';
import { CompiledLimit } from '../../../../lib/testing/store/index.js';
import { compile } from '../../../support/limits/stores.js';
import { blocked, blocking, checkOf, counterOf, everyAlgorithm, five } from './limits.js';
import type { OperationsStage } from './stage.js';

/** Whom it refuses, it refuses for 60 s, then for 2 and for 10 minutes; it forgets after an hour. */
const STEPS = [60_000, 120_000, 600_000];
const FORGET = 3_600_000;
const micros = (ms: number) => ms * 1000;

const escalating = (
  algo: (typeof everyAlgorithm)[number],
  { steps = STEPS, forgetAfter = FORGET, name = 'escalating', shadow = false } = {},
) =>
  new CompiledLimit(five[algo], {
    location: 'test',
    name,
    shadow,
    escalation: { steps: steps.map(micros), forgetAfter: micros(forgetAfter) },
  });

/** Refused for the n-th time, for so long. */
const offence = (offences: number, ms: number): Partial<Decision> => ({ ...blocked(ms), offences });

/** More than ever fits. */
const TOO_MUCH = 6;

export function escalatingBlocksContract(stage: OperationsStage): void {
  const { at, take, peek, reserve, penalize, block, unblock } = stage;

  /** Offends at a moment, with so many units; gives when the block ends. */
  async function offend(limit: CompiledLimit, from: number, offences: number, ms: number): Promise<number> {
    at(from);
    await expect(take(limit, TOO_MUCH)).resolves.toMatchObject({ ...offence(offences, ms), retryAfterMs: Infinity });
    return from + ms;
  }

  describe('blockFor with steps', () => {
    describe.each(everyAlgorithm)('%s', (algo) => {
      const limit = escalating(algo);

      it('blocks longer with each offence, and as long as the last step from then on', async () => {
        let now = 0;
        for (const [index, ms] of [...STEPS, 600_000, 600_000].entries()) {
          at(now);
          await expect(take(limit, 5)).resolves.toMatchObject({ allowed: true, remaining: 0, offences: index });
          await expect(take(limit)).resolves.toMatchObject(offence(index + 1, ms));
          now += ms;
        }
      });

      it('does not escalate by tries during a block', async () => {
        await offend(limit, 0, 1, 60_000);
        for (const ms of [1, 30_000, 59_999]) {
          at(ms);
          await expect(take(limit)).resolves.toMatchObject(offence(1, 60_000 - ms));
          await expect(take(limit, TOO_MUCH)).resolves.toMatchObject({ allowed: false, offences: 1 });
        }
        await offend(limit, 60_000, 2, 120_000);
      });

      it('does not escalate by looks and reservations', async () => {
        const end = await offend(limit, 0, 1, 60_000);
        at(end);
        await take(limit, 5);
        for (let i = 0; i < 3; i++) {
          await expect(peek(limit, TOO_MUCH)).resolves.toMatchObject({ allowed: false, offences: 1 });
          await expect(reserve(limit, TOO_MUCH)).resolves.toMatchObject({ allowed: false, offences: 1 });
        }
        await offend(limit, end, 2, 120_000);
      });

      it('forgets after a time without an offence, which begins with the end of the last block', async () => {
        let end = await offend(limit, 0, 1, 60_000);
        end = await offend(limit, end + FORGET - 1, 2, 120_000);
        at(end + FORGET - 1);
        await expect(peek(limit)).resolves.toMatchObject({ allowed: true, offences: 2 });
        at(end + FORGET);
        await expect(peek(limit)).resolves.toMatchObject({ allowed: true, offences: 0 });
        await offend(limit, end + FORGET, 1, 60_000);
      });

      it('remembers whatever is counted meanwhile', async () => {
        const end = await offend(limit, 0, 1, 60_000);
        for (const ms of [0, 1000, FORGET / 2, FORGET - 2]) {
          at(end + ms);
          await expect(take(limit)).resolves.toMatchObject({ allowed: true, offences: 1 });
        }
        await offend(limit, end + FORGET - 1, 2, 120_000);
      });

      it('tells of nothing that was consumed by what it remembers', async () => {
        at(await offend(limit, 0, 1, 60_000));
        await expect(peek(limit)).resolves.toMatchObject({ allowed: true, remaining: 5, resetAfterMs: 0, offences: 1 });
      });

      it('forgets when it is unblocked, during a block and after it', async () => {
        await offend(limit, 0, 1, 60_000);
        await unblock(limit);
        await expect(peek(limit)).resolves.toMatchObject({ allowed: true, offences: 0 });
        const end = await offend(limit, 1, 1, 60_000);
        at(end);
        await unblock(limit);
        await offend(limit, end, 1, 60_000);
      });

      it('forgets with a reset', async () => {
        const end = await offend(limit, 0, 1, 60_000);
        at(end);
        await stage.store.reset([counterOf(limit)]);
        await offend(limit, end, 1, 60_000);
      });

      it('counts no block by hand, and keeps what was counted beneath it', async () => {
        await block(limit, 5000);
        await expect(peek(limit)).resolves.toMatchObject(offence(0, 5000));
        await offend(limit, 5000, 1, 60_000);
        at(6000);
        await block(limit, 1000);
        await expect(take(limit)).resolves.toMatchObject(offence(1, 1000));
        // That was the last block: the time to forget counts from its end.
        at(7000 + FORGET - 1);
        await expect(peek(limit)).resolves.toMatchObject({ offences: 1 });
        at(7000 + FORGET);
        await expect(peek(limit)).resolves.toMatchObject({ offences: 0 });
      });

      it('holds at once for the next checks of the same call', async () => {
        const costs = [5, 1, 1, TOO_MUCH];
        const answers = (await stage.store.check(costs.map((cost) => checkOf([[limit, cost]])))).flat();
        expect(answers.map(({ allowed, offences }) => [allowed, offences])).toEqual([
          [true, 0],
          [false, 1],
          [false, 1],
          [false, 1],
        ]);
        at(60_000);
        const [again] = (await stage.store.check([checkOf([[limit, TOO_MUCH]]), checkOf([[limit, 1]])])).flat();
        expect(again).toMatchObject({ offences: 2, resetAfterMs: 120_000 });
      });

      it('takes the step of its own list under another one', async () => {
        const shorter = escalating(algo, { steps: [10_000, 20_000] });
        let end = await offend(limit, 0, 1, 60_000);
        end = await offend(limit, end, 2, 120_000);
        end = await offend(shorter, end, 3, 20_000);
        end = await offend(limit, end, 4, 600_000);
        at(end);
        await expect(peek(shorter)).resolves.toMatchObject({ offences: 4 });
      });

      it('ends a block in time under a limit without steps, which forgets what it writes over', async () => {
        const plain = blocking(five[algo], 1000, 'escalating');
        const end = await offend(limit, 0, 1, 60_000);
        at(1000);
        await expect(take(plain)).resolves.toMatchObject(blocked(59_000));
        await expect(take(plain)).resolves.not.toHaveProperty('offences');
        at(end);
        await expect(peek(plain)).resolves.toMatchObject({ allowed: true, remaining: 5 });
        await expect(peek(limit)).resolves.toMatchObject({ offences: 1 });
        await expect(take(plain)).resolves.toMatchObject({ allowed: true, remaining: 4 });
        await expect(peek(limit)).resolves.toMatchObject({ allowed: true, remaining: 4, offences: 0 });
      });

      it('does not begin again with a clock that is set back once it was over and the counter was charged', async () => {
        const end = await offend(limit, 0, 1, 60_000);
        at(end);
        await take(limit);
        at(end - 1);
        await expect(take(limit)).resolves.toMatchObject({ allowed: true, remaining: 3, offences: 1 });
        await offend(limit, end - 1, 2, 120_000);
      });

      it('remembers no longer than if the block had just ended when the clock is set back far', async () => {
        const end = await offend(limit, 0, 1, 60_000);
        at(end);
        await take(limit);
        const back = -1000 * 86_400_000;
        at(back);
        await take(limit);
        at(back + FORGET - 1);
        await expect(peek(limit)).resolves.toMatchObject({ offences: 1 });
        at(back + FORGET);
        await expect(peek(limit)).resolves.toMatchObject({ offences: 0 });
      });

      it('counts of a shadow, which refuses nobody', async () => {
        const shadow = escalating(algo, { name: 'shadow', shadow: true });
        const real = compile({ algo: 'fixed-window', rate: 9, interval: '10s' }, 'real');
        const check = checkOf([
          [shadow, TOO_MUCH],
          [real, 1],
        ]);
        for (const [index, from] of [0, 60_000].entries()) {
          at(from);
          await expect(stage.store.check([check])).resolves.toMatchObject([
            [{ allowed: false, offences: index + 1, resetAfterMs: STEPS[index] }, { allowed: true }],
          ]);
        }
        await expect(peek(real)).resolves.toMatchObject({ remaining: 8 });
      });
    });

    it('is an offence against the limits that refuse alone', async () => {
      const [first, second] = ['first', 'second'].map((name) => escalating('fixed-window', { name }));
      const check = checkOf([
        [first!, TOO_MUCH],
        [second!, 1],
      ]);
      await stage.store.check([check]);
      at(60_000);
      await expect(stage.store.check([check])).resolves.toMatchObject([
        [{ offences: 2 }, { allowed: true, offences: 0 }],
      ]);
      await offend(second!, 60_000, 1, 60_000);
    });

    it('lasts as long as what is owed, where that is longer', async () => {
      const limit = escalating('gcra', { steps: [1000, 2000] });
      await take(limit, 5);
      await penalize(limit, 5);
      await expect(take(limit)).resolves.toMatchObject({ allowed: false, retryAfterMs: 2000, offences: 1 });
      at(1999);
      await expect(take(limit)).resolves.toMatchObject({ allowed: false, retryAfterMs: 1, offences: 1 });
      at(2000);
      await expect(take(limit)).resolves.toMatchObject({ allowed: true, offences: 1 });
    });

    it('lasts 407 days at most, which a block of one length may exceed', async () => {
      const [days407, days814] = [2 ** 45 - 1, 2 ** 46].map((time) => Math.ceil(time / 1000));
      await offend(escalating('gcra', { steps: [days814!] }), 0, 1, days407!);
      await expect(take(blocking(five.gcra, days814!), TOO_MUCH)).resolves.toMatchObject({ resetAfterMs: days814! });
    });

    it('counts 255 offences at most', async () => {
      const limit = escalating('gcra', { steps: [1, 2] });
      for (let index = 0; index < 300; index++) {
        at(index * 2);
        const { offences } = await take(limit, TOO_MUCH);
        expect(offences).toBe(Math.min(index + 1, 255));
      }
    });
  });
}
