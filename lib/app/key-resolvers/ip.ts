import { isIP, isIPv4 } from 'node:net';
import ipaddr from 'ipaddr.js';
import { keyMessages } from '../../engine/errors/messages/calls.js';
import { flatCopy, RecentMap } from '../../engine/util/bounded-maps.js';
import type { RequestParts } from '../transports/request-reader.js';
import type { KeyScheme } from './key-scheme.js';
import type { ProxyWarning } from './proxy-warning.js';

/** The IPv6 addresses that embed an IPv4 address: their prefixes, and the index of the first of the parts (of eight) with that address. */
const EMBEDDING = [
  { prefix: [0, 0, 0, 0, 0, 0xffff], at: 6 }, // mapped, RFC 4291
  { prefix: [0, 0, 0, 0, 0, 0], at: 6 }, // compatible, RFC 4291
  { prefix: [0, 0, 0, 0, 0xffff, 0], at: 6 }, // translated, RFC 7915
  { prefix: [0x64, 0xff9b, 0, 0, 0, 0], at: 6 }, // NAT64, RFC 6052: otherwise all clients behind it would share a counter
  { prefix: [0x2002], at: 1 }, // 6to4, RFC 3056: otherwise one address could be 65,536 clients
  { prefix: [0x2001, 0], at: 6, mask: 0xffff }, // Teredo, RFC 4380: otherwise all clients of a server would share a counter
];

/** Matches the brackets and the port that a proxy may add to an address: `203.0.113.7:4711`, `[2001:db8::1]:4711`. */
const WITH_PORT = /^(?:\[([^\]]+)\]|(\d+\.\d+\.\d+\.\d+))(?::\d+)?$/;

/** Returns the identity of a request's address, if its transport has addresses. */
export type IdentifyAddress = (context: unknown, parts: RequestParts) => string | undefined;

/** The maximum length of an address whose identity is cached. A trusted proxy may send any text. */
const LONGEST_ADDRESS = 45;

/** Counts per address that the framework reports, which depends on nothing but its `trust proxy` setting. */
export function byIp(ipv6Prefix: number, warning: ProxyWarning): IdentifyAddress {
  const recent = new RecentMap<string>();
  const identify = (address: string) => {
    const identity = ipIdentity(address, ipv6Prefix);
    // The identity may be a substring of the address.
    return identity === undefined ? undefined : flatCopy(identity);
  };
  return (_, { request }) => {
    warning.look(request);
    const address = request?.ip;
    if (typeof address !== 'string' || address.length > LONGEST_ADDRESS) return ipIdentity(address, ipv6Prefix);
    return recent.of(address, identify);
  };
}

const IDENTITY = 'ip:';

/** Counts per address. */
export const ipKey: KeyScheme<'ip', true> = {
  form: "'ip'",
  parse: (key) => key === 'ip' || undefined,
  describe: (_, name) => ({ name, noun: 'address' }),
  needsRoute: false,
  isPure: true,
  formOf: () => ({
    begins: IDENTITY,
    isOne: (text, ipv6Prefix) =>
      text.startsWith(IDENTITY) && text !== IDENTITY && (addressForm(text, ipv6Prefix) ?? text) === text,
    expected: keyMessages.address,
  }),
  resolve: (_, { ipv6Prefix, proxyWarning }) => byIp(ipv6Prefix, proxyWarning),
};

/**
 * Returns the identity that `key: 'ip'` uses for an address, for keys that combine an address with something else: `ip:203.0.113.7`,
 * `ip:2001:db8:1:2::`. An IPv6 client has a whole network to itself, so the network is counted. An IPv6 address that embeds an IPv4 address
 * is counted as that address. Returns `undefined` if there is no address; a key function should then also return `undefined`.
 *
 * @param address the client's address, such as `request.ip`
 * @param ipv6Prefix the number of leading bits of an IPv6 address that identify a client, by default 64
 */
export function ipIdentity(address: unknown, ipv6Prefix = 64): string | undefined {
  if (typeof address !== 'string' || address === '') return undefined;
  return `ip:${isIPv4(address) ? address : network(address, ipv6Prefix)}`;
}

/**
 * The identity of an address that an operator has written, with or without the prefix `ip:`; for IPv6, that of its network. `undefined` if
 * the text isn't an address.
 */
export function addressForm(text: string, ipv6Prefix?: number): string | undefined {
  const address = text.startsWith(IDENTITY) ? text.slice(IDENTITY.length) : text;
  return isIP(withoutPort(address)) === 0 ? undefined : ipIdentity(address, ipv6Prefix);
}

/** An address without the port and the brackets that a proxy may add. */
export function withoutPort(text: string): string {
  const [, inBrackets, beforePort] = WITH_PORT.exec(text) ?? [];
  return inBrackets ?? beforePort ?? text;
}

function network(text: string, ipv6Prefix: number): string {
  const address = withoutPort(text);
  // If a trusted proxy sends an address that it couldn't parse, the client still counts as one client, and must not escape the limit.
  if (!ipaddr.isValid(address)) return text.slice(0, 64).replaceAll(/[^A-Za-z0-9_.:@-]/g, '_');
  const parsed = ipaddr.parse(address);
  if (!(parsed instanceof ipaddr.IPv6)) return parsed.toString();
  const embedded = embeddedIPv4(parsed.parts);
  if (embedded !== undefined) return embedded;
  const parts = parsed.parts.map((part, index) => {
    const kept = Math.min(Math.max(ipv6Prefix - index * 16, 0), 16);
    return part & (0xffff << (16 - kept));
  });
  return new ipaddr.IPv6(parts).toRFC5952String();
}

/** The IPv4 address in the parts of an IPv6 address; `undefined` if it embeds none. */
export function embeddedIPv4(parts: readonly number[]): string | undefined {
  const form = EMBEDDING.find(({ prefix }) => prefix.every((part, index) => parts[index] === part));
  if (form === undefined) return undefined;
  const { at, mask = 0 } = form;
  const octets = [parts[at]!, parts[at + 1]!].flatMap((part) => [(part ^ mask) >> 8, (part ^ mask) & 0xff]);
  // Hosts have no address in 0.0.0.0/8: these are `::`, `::1` and the like.
  return octets[0] === 0 ? undefined : octets.join('.');
}
