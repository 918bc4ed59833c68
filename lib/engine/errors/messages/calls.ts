import { counted, didYouMean, quoted, show, unknownName, wrongInput } from '../wording.js';

/** The messages of calls from code, and of limits in the options of outgoing API calls and jobs. */
export const askMessages = {
  noLimits: (location: string, received: unknown) =>
    wrongInput(
      location,
      "the name of a defined limit, a limit such as { name: 'api', algo: 'gcra', rate: 10, interval: '1s' }, or a list of these",
      received,
    ),
  sameLimitTwice: (location: string, name: string) =>
    `${location}: the limit '${name}' is in the list twice. List it once`,
  wrongKeyOf: (location: string, limit: string, received: unknown) =>
    wrongInput(`${location}.key for limit '${limit}'`, 'the function to return a string that is not empty', received),
  wrongCostOf: (location: string, limit: string, received: unknown) =>
    wrongInput(`${location}.cost for limit '${limit}'`, 'the function to return a whole number >= 0', received),
  notAtOnce: (limit: string) =>
    `limit '${limit}' is not counted in this process, so consumeSync cannot decide it. Call consume, or give the limit ` +
    "scope: 'instance'",
} as const;

/** The messages of keys that a limit never has. */
export const keyMessages = {
  /** Leaves out a key that may be a secret. */
  impossible: (limit: string, received: string | undefined, expected: string) =>
    `key: expected ${expected}, received ${received === undefined ? 'a key that' : `${show(received)}, which`} limit '${limit}' never uses`,
  secretOption: (location: string, option: string, expected: string) =>
    `${location}.${option}: expected ${expected}, received a key that the limit never uses`,
  identity: (identity: string) => `'${identity}'`,
  headerValue: (header: string) =>
    `headerIdentity('${header}', value): 'header:${header.toLowerCase()}:' and the hash of the value`,
  global: () => "'global': the limit counts all requests together",
  user: (value: string) =>
    `'user:' and the id, such as 'user:${value === '' || value.length > 40 || value.includes(':') ? '42' : value}'`,
  address: () => "'ip:' and an address, such as 'ip:203.0.113.7'",
  beginning: (begins: readonly string[]) =>
    `a beginning of its keys, such as ${quoted(
      begins.map((each) => `${each}*`),
      'or',
    )}`,
  listedAddress: (ip: string, otherKeys: boolean) =>
    `{ ip: '${ip}' } (an address is not an identity${otherKeys ? ", except for a 'limit' that counts by another key" : ''})`,
  listedAddresses: (pattern: string, otherKeys: boolean) =>
    `'ip:${pattern}', or the network as 'ip'${otherKeys ? ", except for a 'limit' that counts by another key" : ''}`,
} as const;

/** The messages of calls with `upTo`. */
export const upToMessages = {
  wrongUpTo: (received: unknown) => wrongInput('upTo', 'a whole number >= 1', received),
  withCost: (cost: unknown, upTo: unknown) =>
    `options: expected either 'cost' or 'upTo', received cost ${show(cost)} and upTo ${show(upTo)}; upTo takes as many units as there are`,
  held: (limit: string, algo: string) =>
    `limit '${limit}' of algo '${algo}' holds units until they are released, so it does not support 'upTo'. Use 'cost'`,
  notOfAll: (limit: string) =>
    `LimiterService.check: limit '${limit}' has no 'upTo'. Give it to all limits of the check or to none: each gives the same number`,
  shared: (limit: string) =>
    `LimiterService.check: several limits of the check are within limit '${limit}', so 'upTo' would take a different number from it. Use ` +
    'a separate check for each',
  notReserved:
    "LimiterService.reserve: 'upTo' is not supported. Use 'cost': only consume, peek and check accept 'upTo'",
} as const;

/** The messages of calls that wait for units. */
export const waitMessages = {
  tooMany: (limit: string, most: number) =>
    `limit '${limit}' has ${counted(most, 'call')} of this process waiting for one key, the maximum that option 'maxWaiters' allows`,
  tooManyInAll: (limit: string, all: number, most: number) =>
    `limit '${limit}' lets no more calls wait: ${all} of this process wait for units, ten times the maximum for one key that option 'maxWaiters' (${most}) allows`,
} as const;

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
    `limit '${limit}' is within ${quoted(within, 'and')}, and the ${missing.length > 1 ? 'keys' : 'key'} of ${quoted(missing, 'and')} ` +
    `${missing.length > 1 ? 'are' : 'is'} missing: expected ${example(within)}`,
  wrongOptions: (received: unknown) => wrongInput('options', '{ within } or nothing', received),
  wrongWithin: (limit: string, received: unknown, within: readonly string[]) =>
    wrongInput('within', `the keys of the limits that '${limit}' is within: ${example(within)}`, received),
  unknownParents: (limit: string, unknown: readonly string[], within: readonly string[]) =>
    `within: limit '${limit}' is not within ${quoted(unknown, 'or')}, expected only ${quoted(within, 'and')}`,
  notWithin: (limit: string) => `limit '${limit}' is within no other limit. Remove 'within' from the call`,
  wrongParentKey: (limit: string, parent: string, received: unknown) =>
    wrongInput(`within.${parent}`, `a string that is not empty, the key of '${parent}' for limit '${limit}'`, received),
  noFutureUnits: (limit: string) =>
    `limit '${limit}' is within another one, so its units cannot be reserved for the future. Remove 'maxWait': only units that fit now can be taken`,
} as const;

/** The messages of priorities, and of the units that are reserved for them. */
export const priorityMessages = {
  wrongPriority: (received: unknown, known: readonly string[]) => wrongInput('priority', quoted(known, 'or'), received),
  unknownMember: (received: string, known: readonly string[]) => unknownName('option', received, known),
} as const;

/** The messages of held units, and of amounts of money. */
export const holdMessages = {
  noHold: (name: string, algo: string) =>
    `limit '${name}' of algo '${algo}' cannot be reserved without the option 'hold'. Set 'hold' to the time after which its ` +
    "reservations expire, such as '5m'",
  wrongReservation: (received: unknown) =>
    wrongInput('id of the reservation', 'that of a reservation that holds units', received),
  wrongActuals: (received: unknown, limits: number) =>
    wrongInput('actual costs', `a list of ${limits}, one for each limit`, received),
  wrongAmount: (currency: string, received: unknown) =>
    wrongInput(
      `amount in ${currency}`,
      "a decimal number >= 0 with at most six digits after the point, such as '0.12', of at most 9007199254.740991 (as text if a number cannot express it exactly)",
      received,
    ),
  wrongCurrency: (received: unknown) => wrongInput('currency', "an ISO 4217 code such as 'USD'", received),
} as const;
