import { listOf } from '../../../engine/errors/wording.js';

const quoted = (names: readonly string[]) =>
  listOf(
    names.map((name) => `'${name}'`),
    'or',
  );

/** The messages of limits that count over several regions. */
export const worldMessages = {
  excluded: (location: string, option: string) =>
    `${location}: options 'scope: world' and '${option}' exclude each other: units that a region holds are not subject to '${option}'`,
  notFor: (location: string, algo: string, able: readonly string[]) =>
    `${location}: scope: 'world' does not work with algo '${algo}'. Use ${quoted(able)}`,
  tooShort: (location: string, lifetimeMs: number) =>
    `${location}: with scope: 'world', all of the quota would flow back within the ${lifetimeMs} ms for which a region may hold units. ` +
    "Use a longer 'interval', a larger 'burst', or no refill 'intervally'",
  oneRegion: (limit: string) => `limit '${limit}' counts in one region. Use a limit with scope: 'world' on Redis`,
  cut: () => 'The home of the regions does not answer, and this region has no units left',
  noIndex: (reason: string) =>
    `The keys that hold units of limits of scope 'world' cannot be recorded in this region: ${reason}. Its Redis user lacks a right that ` +
    'docs/guides/redis-users.md lists. Until then, units that an instance leaves behind stay charged',
  tooLate: (timeoutMs: number) => `The home of the regions granted nothing within ${timeoutMs} ms`,
} as const;
