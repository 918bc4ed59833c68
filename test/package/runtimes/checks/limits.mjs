import assert from 'node:assert/strict';
import { withLimiters } from './apps.mjs';

const window = { rate: 2, interval: '1h' };

/** Each algorithm allows two units. */
const ALGORITHMS = [
  { algo: 'fixed-window', ...window },
  { algo: 'calendar-window', rate: 2, period: 'year' },
  { algo: 'sliding-window', ...window },
  { algo: 'sliding-log', ...window },
  { algo: 'token-bucket', ...window },
  { algo: 'gcra', ...window },
  { algo: 'leaky-bucket', ...window, queue: 1 },
  { algo: 'concurrency', limit: 2, ttl: '1h' },
];

export const limits = {
  'limits in process, of all algorithms': () => withLimiters({}, (limiters) => holdAll(limiters, 'memory')),
  'blockFor in process': () => withLimiters({}, block),
};

/** Two units of each algorithm are allowed, and a third is refused. */
export async function holdAll(limiters, source) {
  for (const limit of ALGORITHMS) {
    const limiter = limiters.for({ name: limit.algo, ...limit });
    const decisions = [];
    for (let call = 0; call < 3; call++) decisions.push(await limiter.consume('someone'));
    const allowed = decisions.map((decision) => decision.allowed);
    assert.deepEqual(allowed, [true, true, false], `${limit.algo}: ${JSON.stringify(decisions)}`);
    assert.equal(decisions[0].source, source);
    assert.equal(decisions[2].remaining, 0);
    assert.equal((await limiter.consume('another')).allowed, true);
  }
}

/** A refusal blocks the key for longer than its window. */
export async function block(limiters) {
  const limiter = limiters.for({ name: 'tries', algo: 'fixed-window', rate: 1, interval: '1s', blockFor: '1h' });
  assert.equal((await limiter.consume('someone')).allowed, true);
  const refused = await limiter.consume('someone');
  assert.equal(refused.allowed, false);
  assert.ok(refused.retryAfterMs > 3_500_000, `retryAfterMs is ${refused.retryAfterMs}`);
}
