import { didYouMean, listOf, wrongInput } from '../wording.js';

const quoted = (names: readonly string[], conjunction: 'and' | 'or' = 'and') =>
  listOf(
    names.map((name) => `'${name}'`),
    conjunction,
  );

const example = (missing: readonly string[]) =>
  `{ within: { ${missing.map((name) => `${/^[a-z_$][\w$]*$/i.test(name) ? name : `'${name}'`}: '…'`).join(', ')} } }`;

/** The messages of nested limits. */
export const withinMessages = {
  unknownParent: (location: string, parent: string, known: readonly string[]) =>
    `${location}.within: unknown limit '${parent}'` +
    (didYouMean(parent, known) ||
      `, expected ${known.length > 0 ? `one of ${quoted(known, 'or')}` : "the name of another limit of 'define'"}`),
  circle: (location: string, names: readonly string[]) =>
    `${location}.within: these limits form a circle: ${names.map((name) => `'${name}'`).join(' within ')}. Use a limit that is ` +
    'not within this one',
  tooDeep: (location: string, most: number) =>
    `${location}.within: expected at most ${most} levels of limits, received more`,
  parentWith: (location: string, parent: string, other: string) =>
    `${location}.within: '${parent}' has the option '${other}'. Use a limit without it`,
  parentWithoutCost: (location: string, child: string, parent: string) =>
    `${location}.within: '${parent}' has no 'cost', and the cost of '${child}' is measured once the response has ended. Give '${parent}' its own 'cost'`,
  hasOthersWithin: (location: string, name: string, option: string) =>
    `${location}: other limits are within '${name}', so it cannot have the option '${option}'. Use it on a limit that no other is within`,
  parentAdapts: (location: string, parent: string, algo: string) =>
    `${location}.within: '${parent}' has algo '${algo}', which learns its quota. Use a limit of another algorithm`,
  otherScope: (location: string, parent: string, own: string, other: string) =>
    `${location}.within: '${parent}' has scope '${other}', and this limit has scope '${own}'. Give both the same scope: they are charged together`,
  otherLimitOfName: (location: string, child: string, parent: string) =>
    `${location}: limit '${child}' is within the defined limit '${parent}', and another limit here has that name. Give the other limit another 'name'`,
  skipsParent: (location: string, child: string, parent: string) =>
    `${location}: limit '${child}' applies there and is within '${parent}'. Also skip '${child}': each charge of it is charged to both`,
  notHere: (location: string, limit: string) =>
    `${location}: limit '${limit}' is within another one, whose key is unknown here. Use a limit without 'within'`,
  missingParents: (limit: string, missing: readonly string[], within: readonly string[]) =>
    `limit '${limit}' is within ${quoted(within)}, and the ${missing.length > 1 ? 'keys' : 'key'} of ${quoted(missing)} ` +
    `${missing.length > 1 ? 'are' : 'is'} missing: expected ${example(within)}`,
  wrongOptions: (received: unknown) => wrongInput('options', '{ within } or nothing', received),
  wrongWithin: (limit: string, received: unknown, within: readonly string[]) =>
    wrongInput('within', `the keys of the limits that '${limit}' is within: ${example(within)}`, received),
  unknownParents: (limit: string, unknown: readonly string[], within: readonly string[]) =>
    `within: limit '${limit}' is not within ${quoted(unknown, 'or')}, expected only ${quoted(within)}`,
  notWithin: (limit: string) => `limit '${limit}' is within no other limit. Remove 'within' from the call`,
  wrongParentKey: (limit: string, parent: string, received: unknown) =>
    wrongInput(`within.${parent}`, `a string that is not empty, the key of '${parent}' for limit '${limit}'`, received),
  noFutureUnits: (limit: string) =>
    `limit '${limit}' is within another one, so its units cannot be reserved for the future. Remove 'maxWait': only units that fit now can be taken`,
} as const;
