/** Where the processor time of a function goes: what runs longest by itself, as the V8 profiler samples it. */
import { Session } from 'node:inspector/promises';

const TOP = 10;
const SAMPLE_MICROS = 200;
/** What is no work of the function: waiting, and the profiler itself. */
const NOT_COUNTED = ['(idle)', 'dispatch'];

/** @returns the ten largest shares of the time in which the process was not idle */
export async function profiled(run) {
  const session = new Session();
  session.connect();
  try {
    await session.post('Profiler.enable');
    await session.post('Profiler.setSamplingInterval', { interval: SAMPLE_MICROS });
    await session.post('Profiler.start');
    await run();
    const { profile } = await session.post('Profiler.stop');
    return topOf(profile);
  } finally {
    session.disconnect();
  }
}

function topOf({ nodes, samples, timeDeltas }) {
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
  const micros = new Map();
  let total = 0;
  for (const [index, id] of samples.entries()) {
    const frame = frames.get(id);
    if (frame.url === '' && NOT_COUNTED.includes(frame.functionName)) continue;
    const name = nameOf(frame);
    micros.set(name, (micros.get(name) ?? 0) + timeDeltas[index]);
    total += timeDeltas[index];
  }
  const sorted = [...micros].toSorted(([, one], [, other]) => other - one);
  return sorted.slice(0, TOP).map(([name, time]) => ({ name, share: time / total }));
}

/** A function with the package or the file that it is from. */
function nameOf({ functionName, url, lineNumber }) {
  const name = functionName === '' ? `line ${lineNumber + 1}` : functionName;
  if (url === '') return name;
  const inPackage = url.split('/node_modules/').at(-1);
  return `${name} (${inPackage.includes('/bench/') ? `bench/${inPackage.split('/bench/').at(-1)}` : inPackage})`;
}
