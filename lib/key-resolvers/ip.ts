import { isIPv4 } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { RequestParts } from '../transports/request-reader.js';
import type { ProxyWarning } from './proxy-warning.js';

/** What a proxy may put around an address: `203.0.113.7:4711`, `[2001:db8::1]:4711`. */
const WITH_PORT = /^(?:\[([^\]]+)\]|(\d+\.\d+\.\d+\.\d+))(?::\d+)?$/;

/** Says whose address a request has, if its transport knows addresses. */
export type IdentifyAddress = (context: unknown, parts: RequestParts) => string | undefined;

/** Counts by the address that the framework names, so by its own `trust proxy` setting, and by nothing else. */
export function byIp(ipv6Prefix: number, warning: ProxyWarning): IdentifyAddress {
  return (_, { request }) => {
    warning.look(request);
    return ipIdentity(request?.ip, ipv6Prefix);
  };
}

/** The identity of an address: an IPv6 client has a whole network to itself, so the network counts. */
export function ipIdentity(address: unknown, ipv6Prefix: number): string | undefined {
  if (typeof address !== 'string' || address === '') return undefined;
  return `ip:${isIPv4(address) ? address : network(address, ipv6Prefix)}`;
}

function network(text: string, ipv6Prefix: number): string {
  const [, inBrackets, beforePort] = WITH_PORT.exec(text) ?? [];
  const address = inBrackets ?? beforePort ?? text;
  // What a trusted proxy made of an address it could not read still is one client, and must not escape the limit.
  if (!ipaddr.isValid(address)) return text.slice(0, 64).replaceAll(/[^A-Za-z0-9_.:@-]/g, '_');
  const parsed = ipaddr.parse(address);
  if (!(parsed instanceof ipaddr.IPv6)) return parsed.toString();
  if (parsed.isIPv4MappedAddress()) return parsed.toIPv4Address().toString();
  const parts = parsed.parts.map((part, index) => {
    const kept = Math.min(Math.max(ipv6Prefix - index * 16, 0), 16);
    return part & (0xffff << (16 - kept));
  });
  return new ipaddr.IPv6(parts).toRFC5952String();
}
