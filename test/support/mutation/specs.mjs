import { specs } from '../jest/suites.mjs';

/** The specs of what is mutated, of any tier, by their folders; `'*'` is every spec of a folder. */
const NAMES = {
  'engine/adaptive': ['app', 'asking', 'simulation', 'transports'],
  'engine/algorithms': [
    'anchored-calendar',
    'arrival-time',
    'block-for',
    'calendar',
    'calendar-window',
    'changed-parameters',
    'coarse-ticks',
    'concurrency',
    'fixed-window',
    'giving-back',
    'holds',
    'invariants',
    'leaky-bucket',
    'leases',
    'mixed-definitions',
    'models',
    'options',
    'reserved-queue',
    'scale',
    'sliding-log',
    'sliding-window',
    'toy-algorithm',
    'warm-up-options',
  ],
  'storage/features/candidates': ['app', 'histories', 'limiter', 'options', 'overrides', 'places'],
  'storage/contract': [
    'all-or-nothing',
    'blocks-in-memory',
    'carried-over',
    'circuit',
    'circuits',
    'claims',
    'counters-in-memory',
    'direct-store',
    'eviction',
    'fallback-operations',
    'holds-in-layers',
    'kept-counters',
    'list-store',
    'memory-store',
    'one-deadline',
    'prefetch',
    'prefetch-counters',
    'prefetch-operations',
    'prefetch-several-limits',
    'prefetched-units',
    'remembered-refusals',
    'remembered-refusals-bounds',
    'remembered-refusals-end',
    'scoped-store',
    'scoped-store-calls',
    'store-layer',
    'stores',
  ],
  models: ['escalating-blocks', 'holds', 'stores'],
  e2e: [
    'answers',
    'bad-input',
    'custom-transport',
    'defaults',
    'federation',
    'graphql',
    'holding',
    'keys',
    'lists',
    'middleware',
    'microservices',
    'never-more',
    'outcomes',
    'priorities',
    'refusals',
    'routes',
    'scopes',
    'shut-down',
    'start-up',
    'streams',
    'websockets',
    'wiring',
  ],
  'storage/features/hierarchies': ['app', 'borrowing', 'limiter', 'stores'],
  'engine/limits': ['arguments', 'block-terms', 'check-result', 'identity', 'money', 'priorities'],
  nest: [
    'guard-at-once',
    'limit-types',
    'limiter.service',
    'limits-that-live',
    'reservations',
    'store-stack',
    'transports',
  ],
  'app/overrides': [
    'history',
    'keyed-rates',
    'lists/configured-lists',
    'lists/lists',
    'lists/prefix-table',
    'modes',
    'overrides',
  ],
  'engine/plans': ['anchors-in-app'],
  'storage/redis': ['fallback-store', 'prefetch', 'refusal-cache'],
  'nest/request': '*',
  security: ['identities', 'identity-memory', 'resets', 'user-functions'],
  'nest/shadow': ['shadow-mode'],
  'storage/features/shares': ['app', 'fairness', 'properties', 'record', 'stores', 'waiting'],
  'storage/telemetry': ['decisions'],
  'storage/features/usage': ['app', 'histories', 'routes', 'stores'],
  'app/waiting': ['changed-limits', 'giving-up', 'listed', 'memory', 'wait-queue', 'wake-ups'],
};

const all = specs();
const named = Object.entries(NAMES).flatMap(([folder, names]) =>
  names === '*' ? matching(`test/${folder}/[^/]+`) : names.flatMap((name) => matching(`test/${folder}/${name}`)),
);

/** Those that are asked for: all, or some whose paths begin so, as in `MUTATION_SPECS=test/nest/request,test/e2e/holding`. */
const asked = process.env['MUTATION_SPECS']?.split(',') ?? [''];

export const SPECS = named.filter((path) => asked.some((beginning) => path.startsWith(beginning)));
if (SPECS.length === 0) throw new Error(`MUTATION_SPECS is '${asked.join(',')}': no path of a spec begins with it`);

/** A spec stays listed when it moves to another tier. */
function matching(path) {
  const pattern = new RegExp(`^${path}(?:\\.long)?\\.spec\\.ts$`);
  const found = all.filter((spec) => pattern.test(spec));
  if (found.length === 0) throw new Error(`test/support/mutation/specs.mjs lists ${path}, which has no spec`);
  return found.toSorted();
}
