import { afterEach, describe, expect, it } from '@jest/globals';
import type { LimitDefinition } from '../../../../lib/index.js';
import { RatesApp } from '../../../app/overrides/overrides-app.js';
import { PolicyFolder } from '../../../app/policy/policy-folder.js';

const folder = new PolicyFolder();
let app: RatesApp | undefined;
afterEach(async () => {
  await app?.close();
  app = undefined;
});

const window = { algo: 'fixed-window', rate: 10, interval: '1h' } satisfies LimitDefinition;

const year = { algo: 'calendar-window', rate: 10, period: 'year' } satisfies LimitDefinition;

const start = async (text: string, define: Record<string, LimitDefinition> = { team: window, year }) => {
  const source = await folder.write('limits.yaml', text);
  app = await RatesApp.start({ policy: { source }, define });
  return app.service;
};

describe('policies of limits within others', () => {
  it('put limits within each other, and let them borrow', async () => {
    const service = await start(
      'limits:\n' +
        '  team: { within: org, ceiling: 15 }\n' +
        '  org: { algo: fixed-window, rate: 20, interval: 1h, lends: 0.5 }\n' +
        'overrides: { team: { t2: { ceiling: 12 } } }\n',
    );
    const team = service.for('team');
    const within = { org: 'o1' };
    expect(await team.consume('t1', { cost: 10, within })).toMatchObject({
      allowed: true,
      levels: [{ quota: 15 }, {}],
    });
    expect(await team.consume('t1', { within })).toMatchObject({ allowed: false });
    expect(await team.peek('t2', { within })).toMatchObject({ levels: [{ quota: 12 }, { quota: 20 }] });
  });

  it.each([
    [
      'an unknown limit',
      'limits: { team: { within: nobody } }',
      ":1:11 limits.team.within: unknown limit 'nobody', expected one of 'year'",
    ],
    ['a wrong name', 'limits: { team: { within: 5 } }', 'within'],
    ['a circle', 'limits: { team: { within: team } }', "'team' within 'team'"],
    ['a wrong share', 'limits: { team: { lends: 2 } }', 'lends'],
    ['a plan of a parent', 'limits: { team: { within: year }, year: { rollover: 0.5 } }', "'rollover'"],
    ['a ceiling over nothing', 'limits: { team: { ceiling: 20 } }', "'ceiling' needs 'within'"],
  ])('are refused at start-up for %s', async (_, text, message) => {
    await expect(start(text)).rejects.toThrow(message);
  });
});
