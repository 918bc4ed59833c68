import { listOf, show } from '../wording.js';

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
    `a beginning of its keys, such as ${listOf(
      begins.map((each) => `'${each}*'`),
      'or',
    )}`,
  listedAddress: (ip: string, otherKeys: boolean) =>
    `{ ip: '${ip}' } (an address is not an identity${otherKeys ? ", except for a 'limit' that counts by another key" : ''})`,
  listedAddresses: (pattern: string, otherKeys: boolean) =>
    `'ip:${pattern}', or the network as 'ip'${otherKeys ? ", except for a 'limit' that counts by another key" : ''}`,
} as const;
