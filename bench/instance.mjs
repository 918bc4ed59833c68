/** One of several processes: `node instance.mjs <job>`. Says when it is warm, and after a message the result of one round. */
import { ours } from './contenders/ours.mjs';
import { rateLimiterFlexible } from './contenders/peers.mjs';
import { steady } from './limits.mjs';
import { keysOf, round, roundOf, WARM_UP_MS } from './measure.mjs';

const { contender, target, keys, inFlight, ms, index } = JSON.parse(process.argv[2]);
const found = [ours, rateLimiterFlexible].find(({ name }) => name === contender);
const asked = await found.make(target, [steady]);
const inOrder = keysOf(keys);
// No two processes begin with the same key.
const keyOf = (number) => inOrder(number + index * 1009);

await round(asked.check, { inFlight, keyOf, ms: WARM_UP_MS });

async function answer() {
  const result = await roundOf(asked, { inFlight, keyOf, ms });
  if (result.refused > 0) throw new Error(`${contender} refused ${result.refused} of what it should allow`);
  process.send(result);
}

process.on('message', () => void answer());
process.send('warm');
