/** An instance of the app, as a process: it always has calls that wait, until it is told to end. */
import { contenders } from './contenders.mjs';

const terms = JSON.parse(process.argv[2]);
const { send, close, fallback = () => 0 } = await contenders[terms.contender](terms);

const state = { running: true, number: 0, failed: 0 };

async function callAgainAndAgain() {
  while (state.running) {
    try {
      await send(terms.url, { 'x-call': `${terms.index}:${++state.number}` });
    } catch (error) {
      if (state.running && ++state.failed === 1) console.error(error);
    }
  }
}

process.on('message', () => {
  state.running = false;
  process.send({ failed: state.failed, fallback: fallback() }, () => {
    void Promise.resolve(close()).finally(() => process.exit());
  });
});
process.send({ ready: true });
await Promise.all(Array.from({ length: terms.waiting }, callAgainAndAgain));
