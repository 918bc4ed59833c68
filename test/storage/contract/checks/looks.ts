import { expect, it } from '@jest/globals';
import { algorithmNames } from '../../../support/limits/arbitraries.js';
import { comparable, compile } from '../../../support/limits/stores.js';
import { five } from './limits.js';
import type { CheckStage } from './stage.js';

export function looksContract(stage: CheckStage): void {
  it('answers a look like the check that follows it', async () => {
    const entries = algorithmNames.map((algo) => ({ limit: compile(five[algo]), identity: 'user:42', cost: 2 }));
    for (let i = 0; i < 4; i++) {
      const [looked] = comparable(await stage.store.check([{ entries, peek: true }]));
      const [charged] = comparable(await stage.store.check([{ entries }]));
      const outcome = ({ allowed, retryAfterMs, delayMs, ticket }: (typeof looked & object)[number]) => {
        return { allowed, retryAfterMs, delayMs, ticket };
      };
      expect(charged!.map(outcome)).toEqual(looked!.map(outcome));
    }
  });
}
