import { show, wrongInput } from '../wording.js';

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
