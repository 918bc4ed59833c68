import { listOf, show } from '../wording.js';

/** The messages of keys that a limit never counts by. */
export const keyMessages = {
  /** Without the key where that may be a secret. */
  impossible: (limit: string, got: string | undefined, wants: string) =>
    `key${got === undefined ? '' : ` is ${show(got)}, which`} is none of limit '${limit}', wants ${wants}`,
  secretOption: (location: string, option: string, wants: string) =>
    `${location}: option '${option}' is none of the limit, wants ${wants}`,
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
    `{ ip: '${ip}' }: an address is no identity${otherKeys ? ", except for a 'limit' that counts by another key" : ''}`,
  listedAddresses: (pattern: string, otherKeys: boolean) =>
    `'ip:${pattern}', or the network as 'ip'${otherKeys ? ", except for a 'limit' that counts by another key" : ''}`,
} as const;
