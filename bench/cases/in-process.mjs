/** Decisions of limits that are counted in the process: one limit, by a promise and without one, and several a check. */
import { oursAtOnce, oursInProcess, oursInProcessBare, oursInProcessByCheck } from '../contenders/ours.mjs';
import { knownAnswer, rateLimiterFlexibleInMemory } from '../contenders/peers.mjs';
import { ample } from '../limits.mjs';
import { compare } from '../measure.mjs';
import { micros, table, thousands, whole } from '../report/format.mjs';

const DAY_MS = 86_400_000;
const MANY_KEYS = 10_000;
const FEW_KEYS = 100;
const COUNTS = [1, 3, 10];
const ONE = [oursInProcess, oursAtOnce, rateLimiterFlexibleInMemory, oursInProcessBare, knownAnswer];

const ampleLimits = (count) =>
  Array.from({ length: count }, (_, index) => ({ ...ample, intervalMs: DAY_MS * (1 + index) }));

/** A contender that has been proved with one limit, with so many. */
const withLimits = ({ name, make }, count) => ({
  name,
  unlimited: true,
  make: () => make(undefined, ampleLimits(count)),
});

const cellsOf = ({ perSecond, cpuMicros }, first) => [
  thousands(perSecond),
  `${(first.perSecond / perSecond).toFixed(2)} x`,
  micros(cpuMicros, 2),
];

async function measure({ ms, rounds, profile }) {
  const common = { ms, rounds, inFlight: 256 };
  const one = await compare(ONE, { ...common, limits: [ample], keys: MANY_KEYS, profile });
  const few = await compare(ONE, { ...common, limits: [ample], keys: FEW_KEYS });
  // All in one comparison, since ratios between them are what is wanted.
  const contenders = COUNTS.flatMap((count) =>
    [oursInProcessByCheck, rateLimiterFlexibleInMemory].map((contender) => withLimits(contender, count)),
  );
  const found = await compare(contenders, { ...common, keys: FEW_KEYS });
  const several = found.map((result, index) => ({ ...result, limits: COUNTS[index >> 1] }));
  return { one, few, several };
}

function section({ one, few, several }, { goalsOf, profileOf }) {
  const [first] = one;
  const costOfOne = (name) => several.find((each) => each.name === name && each.limits === 1).cpuMicros;
  return [
    '## In process',
    'Limits without Redis. All are awaited by the same loop, what `consumeSync` returns as well. With many keys most of the time goes to the memory in which their counters are.',
    table(
      ['', ...[MANY_KEYS, FEW_KEYS].flatMap((keys) => [`${whole(keys)} keys`, `${first.name} is`, 'CPU each'])],
      one.map((many, index) => [many.name, ...cellsOf(many, first), ...cellsOf(few[index], few[0])]),
    ),
    `Several limits a check, ${FEW_KEYS} keys, by \`LimiterService.check\`; the peer asks one limiter after the other.`,
    table(
      ['limits of a check', '', 'checks', 'CPU each', 'of one limit'],
      several.map(({ limits, name, perSecond, cpuMicros }) => [
        limits,
        name,
        thousands(perSecond),
        micros(cpuMicros, 2),
        `${(cpuMicros / costOfOne(name)).toFixed(1)} x`,
      ]),
    ),
    ...goalsOf('in-process'),
    ...profileOf('one limit in process', first.profile),
  ];
}

export const inProcess = { name: 'in-process', measure, section };
