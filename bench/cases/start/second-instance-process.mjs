/** Starts an instance, and decides once for a key: `node --expose-gc second-instance-process.mjs <redis url> <prefix>`. */
import { startApp } from '../../contenders/ours.mjs';
import { costsOf } from './costs.mjs';
import { optionsOf } from './second-instance-options.mjs';

const [redis, prefix] = process.argv.slice(2);

const costs = await costsOf(async () => {
  const { limiters } = await startApp(optionsOf(redis, prefix));
  await limiters.for('api').consume('user:0');
});
console.log(JSON.stringify(costs));
process.exit();
