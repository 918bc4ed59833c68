import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { CompiledLimit } from '../../../../lib/testing/store/index.js';
import { expectMatch } from '../../../support/limits/property-runs.js';
import { ask, compile } from '../../../support/limits/stores.js';
import type { CheckStage } from './stage.js';

export function identitiesContract(stage: CheckStage): void {
  describe('identities', () => {
    const limit = compile({ algo: 'fixed-window', rate: 1, interval: '10s' });
    const odd = {
      'of 10 KB': 'x'.repeat(10_240),
      'of 10 KB that end otherwise': `${'x'.repeat(10_239)}y`,
      'with line breaks': 'a\r\nb\n',
      'with braces': '{a}{b}}{',
      'with NUL': 'a\0b',
      'with emoji': '👩‍👩‍👧',
      'with half an emoji': '\ud83d',
      'with the other half': '\ude00',
      'with a replacement character': '\ufffd',
      'like a property': '__proto__',
      'like a hash': `#${'A'.repeat(43)}`,
      'with a blank': ' ',
    };

    it.each(Object.entries(odd))('%s', async (_, identity) => {
      for (const other of Object.values(odd)) {
        if (other !== identity) await ask(stage.store, limit, { identity: other });
      }
      await expect(ask(stage.store, limit, { identity })).resolves.toMatchObject({ allowed: true, remaining: 0 });
      await expect(ask(stage.store, limit, { identity })).resolves.toMatchObject({ allowed: false });
    });

    it('never share a counter, nor do names', async () => {
      const unit = fc.constantFrom(
        'a',
        'b',
        ':',
        '{',
        '}',
        '#',
        '\n',
        '\0',
        '%',
        ' ',
        'é',
        'e\u0301',
        '\ud83d',
        '\ude00',
      );
      const anything = fc.integer({ min: 0, max: 0xff_ff }).map((code) => String.fromCharCode(code));
      const identity = fc.string({
        unit: fc.oneof({ weight: 6, arbitrary: unit }, anything),
        minLength: 1,
        maxLength: 6,
      });
      const name = fc.string({ unit: fc.constantFrom('a', 'b', ':', '{', '}', '#', ' '), minLength: 1, maxLength: 4 });
      const scope = fc.constantFrom('', 'a', 'b');
      const one = fc.record({ identity, name, scope });
      // Often parts of one text that was cut elsewhere.
      const cut = fc
        .tuple(fc.array(fc.constantFrom('a', 'b', 'fw'), { minLength: 3, maxLength: 6 }), fc.nat(), fc.nat())
        .map(([words, i, j]) => {
          const split = (at: number) => {
            const index = 1 + (at % (words.length - 1));
            return { identity: words.slice(0, index).join(':'), name: words.slice(index).join(':'), scope: '' };
          };
          return [split(i), split(j)] as const;
        });
      await fc.assert(
        fc.asyncProperty(fc.oneof(fc.tuple(one, one), cut), async ([first, second]) => {
          fc.pre(JSON.stringify(first) !== JSON.stringify(second));
          const counters = [first, second].map(({ identity, name, scope }) => ({
            identity,
            limit: new CompiledLimit(
              { algo: 'fixed-window', rate: 1, interval: '10s' },
              { location: 'test', name, namespace: scope },
            ),
          }));
          await stage.store.reset(counters);
          for (const { limit, identity } of counters) {
            expectMatch(await ask(stage.store, limit, { identity }), { allowed: true });
          }
        }),
        {
          numRuns: 500,
          examples: [
            [
              [
                { identity: 'a:b', name: 'c', scope: '' },
                { identity: 'a', name: 'b:c', scope: '' },
              ],
            ],
          ],
        },
      );
    });
  });
}
