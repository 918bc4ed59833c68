/** One of several processes: `node instance.mjs <job>`. Says when it is warm, and after a message the result of one round. */
import { mixed } from './contenders/combine.mjs';
import { ours, oursFixed, oursGathering } from './contenders/ours.mjs';
import { rateLimiterFlexible } from './contenders/peers.mjs';
import { several, steady } from './limits.mjs';
import { keysOf, round, roundOf, WARM_UP_MS } from './measure.mjs';

/** As long-lived processes are: what they run often is compiled by then. */
const WARM_UP_CHECKS = 10_000;

const { contender, target, keys, inFlight, ms, index, limits = 1 } = JSON.parse(process.argv[2]);
const found = [ours, oursFixed, oursGathering, rateLimiterFlexible].find(({ name }) => name === contender);
const asked = limits === 1 ? await found.make(target, [steady]) : await found.make(target, several(limits), mixed);
const inOrder = keysOf(keys);
// No two processes begin with the same key.
const keyOf = (number) => inOrder(number + index * 1009);

// Many processes on few processors do little in a second.
for (let count = 0; count < WARM_UP_CHECKS;) {
  count += (await round(asked.check, { inFlight, keyOf, ms: WARM_UP_MS })).count;
}

async function answer() {
  const result = await roundOf(asked, { inFlight, keyOf, ms });
  if (result.refused > 0) throw new Error(`${contender} refused ${result.refused} of what it should allow`);
  process.send(result);
}

process.on('message', () => void answer());
process.send('warm');
