import { show } from '../wording.js';

/** The messages of lists. */
export const listMessages = {
  networkWants: () =>
    "an IP address, or a network in CIDR notation, such as '203.0.113.7', '10.0.0.0/8' or '2001:db8::/32', without a zone",
  hostBits: (network: string, address: string) => `the network '${network}' or the address '${address}'`,
  listedIdentityWants: () =>
    "the key of one identity such as 'tenant:acme', of 1 to 512 characters without a star; the beginning of several is a 'pattern'",
  listedPatternWants: () =>
    "the beginning of keys with a star at the end such as 'tenant:*', of 2 to 512 characters and no other star",
  listEntryWants: () => "one of { ip: '10.0.0.0/8' }, { identity: 'tenant:acme' } and { pattern: 'tenant:*' }",
  notAListEntry: (location: string, got: unknown) =>
    `${location}: got ${show(got)}, wants ${listMessages.listEntryWants()}`,
  onBothLists: (location: string, other: string) =>
    `${location}: the same entry is in ${other}, too, wants it on one of the lists`,
  listEntryIgnored: (limit: string, entry: string, reason: string) =>
    `the entry ${show(entry)} of the lists of ${limit === '' ? 'all limits' : `limit '${limit}'`} is ignored: ${reason}`,
  deniedKey: (name: string) => `a list refuses the key for limit '${name}'`,
  forbidden: () => 'Forbidden',
} as const;
