import { listOf, quoted, show, wrongInput } from '../wording.js';
import { optionMessages } from './options.js';

/** The messages of lists. */
export const listMessages = {
  networkExpected: () =>
    "an IP address, or a network in CIDR notation, such as '203.0.113.7', '10.0.0.0/8' or '2001:db8::/32', without a zone",
  hostBits: (network: string, address: string) => `the network '${network}' or the address '${address}'`,
  listedIdentityExpected: () =>
    "the key of one identity such as 'tenant:acme', of 1 to 512 characters without a star (for several keys, use 'pattern')",
  listedPatternExpected: () =>
    "the beginning of keys with a star at the end such as 'tenant:*', of 2 to 512 characters and no other star",
  listEntryExpected: () => "one of { ip: '10.0.0.0/8' }, { identity: 'tenant:acme' } and { pattern: 'tenant:*' }",
  notAListEntry: (location: string, received: unknown) =>
    wrongInput(location, listMessages.listEntryExpected(), received),
  onBothLists: (location: string, other: string) =>
    `${location}: the same entry is also in ${other}. Keep it on one of the lists`,
  listEntryIgnored: (limit: string, entry: string, reason: string) =>
    `the entry ${show(entry)} of the lists of ${limit === '' ? 'all limits' : `limit '${limit}'`} is ignored: ${reason}`,
  deniedKey: (name: string) => `a list denies the key for limit '${name}'`,
  forbidden: () => 'Forbidden',
} as const;

/** The messages of windows that begin at an anchor, and of prepaid units. */
export const planMessages = {
  anchorExpected: () =>
    "a Date, an ISO 8601 date such as '2026-01-31', milliseconds since the epoch, or a function of the context that returns " +
    'one of these, of the years 1900 to 2199',
  fixedAnchorExpected: () =>
    "a fixed date: an ISO 8601 date such as '2026-01-31', or milliseconds since the epoch, of the years 1900 to 2199",
  anchorPeriod: (location: string, period: string, able: readonly string[]) =>
    `${location}: option 'anchor' does not work with period '${period}'. Use ${listOf(able, 'or')}`,
  wrongCredits: (received: unknown) => wrongInput('credits', `a whole number >= 1 and <= ${2 ** 51}`, received),
  wrongCreditId: (received: unknown) => wrongInput('id of the credit', 'a string that is not empty', received),
  wrongCreditOptions: (received: unknown) =>
    wrongInput('options of the credit', "{ id: 'payment-1' } or nothing", received),
  noCredits: (limit: string) =>
    `limit '${limit}' takes no credits. Set the option 'credits' of the limit: { credits: true }`,
  noCreditStore: (limit: string) =>
    `the store of limit '${limit}' does not support credits. Use a store with the method 'credit'`,
  notAnchored: (limit: string) =>
    `limit '${limit}' takes no anchor: its option 'anchor' is not a function of the request. Remove 'anchor' from the call`,
} as const;

/** The messages of policies: their errors, and changes of their versions. */
export const policyMessages = {
  wrongValue: (shown: string, expected: string) => `expected ${expected}, received ${shown}`,
  missing: (expected: string) => `missing, expected ${expected}`,
  impossibleKey: (expected: string) => `expected ${expected}, received a key that the limit never uses`,
  unknown: (name: string, known: readonly string[]) => optionMessages.unknown(name, known),
  noCommonAlgorithm: (options: readonly string[]) =>
    `no algorithm has all of the options ${quoted(options, 'and')}. Use the options of one algorithm`,
  twice: (name: string) => `${show(name)} appears twice. Keep one`,
  onBothLists: (other: string) => `the same entry is also in ${other}. Keep it on one of the lists`,
  nothingSaid: (known: readonly string[]) =>
    `it is empty, expected at least one ${known.length > 12 ? 'option' : `of ${known.join(', ')}`}`,
  notYaml: (reason: string) => `it is not YAML: ${reason}`,
  notJson: (reason: string) => `it is not JSON: ${reason}`,
  tooDeep: (most: number) => `it is nested more than ${most} levels deep`,
  notText: () => 'it is not UTF-8 text',
  tooLarge: (most: number) => `it has more than ${most} bytes`,
  empty: () => "it is empty, expected an object of 'limits', 'overrides' and 'lists'",
  noAnchors: () => 'anchors and aliases are not supported. Write the value itself',
  noTags: (tag: string) => `the tag ${show(tag)} is not supported. Write plain values`,
  wrongName: () => 'expected a text as a name, in quotes if it looks like a number',
  elsewhere: () => 'it points to another folder than before. Keep it in its own folder or in that of the start',
  unreadable: (reason: string) => `it cannot be read: ${reason}`,
  failed: (reason: string) => `the function failed: ${reason}`,
  timedOut: (timeoutMs: number) => `it returned nothing within ${timeoutMs} ms`,
  unknownLimit: (name: string, known: readonly string[]) =>
    `unknown limit ${show(name)}, expected a limit of 'define', 'forFeature' or 'limits', or, in the policy's 'limits', an 'algo': ` +
    (known.length > 0 ? quoted(known) : 'there is none'),
  needsRestart: (option: string, received: unknown, running: unknown) =>
    `option '${option}' would change from ${show(running)} to ${show(received)}, which needs a restart: it cannot change while the app runs`,
  goneLimit: (name: string) =>
    `limit ${show(name)} is gone, which needs a restart: a limit that only the policy defines cannot be removed while the app runs`,
  refused: (lines: readonly string[]) =>
    lines.length === 1 ? lines[0]! : `the policy has ${lines.length} problems:\n  ${lines.join('\n  ')}`,
  notTaken: (lines: readonly string[]) =>
    `the changed policy is rejected, and the last valid one stays in effect: ${policyMessages.refused(lines)}`,
  taken: (name: string) => `the policy ${name} has changed, and is now in effect`,
  asBefore: (name: string) => `the policy ${name} is again the same as the one in effect`,
  sourceExpected: () => 'the path of a .yaml, .yml or .json file, or a function that returns an object',
  everyWithoutWatch: (received: unknown) =>
    `${wrongInput('RateLimitModule.policy.every', 'no value', received)}: it needs 'watch: true'`,
  everyExpected: () => 'at least 10 ms and at most 1 day',
  timeoutExpected: () => 'at most 1 hour',
} as const;
