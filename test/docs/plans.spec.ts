import { describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { MemoryStore } from '../../lib/stores/memory/memory.store.js';
import { ask, compile, ManualClock } from '../support/stores.js';

const guide = readFileSync('docs/guides/plans.md', 'utf8');

describe('the guide of plans', () => {
  it('has a table of what moves on that is right', async () => {
    const rows = [
      ...guide.matchAll(/^\| (\w+) +\| ([\d,]+) +\| ([\d,]+) +\| ([\d,]*) +\| ([\d,]*) +\| ([\d,]*|nothing) +\|$/gm),
    ];
    expect(rows.map(([, month]) => month)).toEqual(['January', 'February', 'March', 'April', 'May', 'June']);
    const clock = new ManualClock();
    const store = new MemoryStore({ clock: clock.now });
    const limit = compile({ algo: 'calendar-window', rate: 1000, period: 'month', rollover: 0.5 });
    for (const [month, [, , moved, quota, used]] of rows.entries()) {
      const [movedHere, all, units] = [moved, quota, used].map((text) => Number(text!.replaceAll(',', '')));
      clock.micros = Date.UTC(2026, month, 10) * 1000;
      const before = await ask(store, limit, { peek: true });
      expect([month, before.quota]).toEqual([month, all]);
      expect(movedHere).toBe(all! - 1000);
      if (units! > 0) expect(await ask(store, limit, { cost: units! })).toMatchObject({ allowed: true });
    }
    await store.close();
  });
});
