import { isIPv4 } from 'node:net';
import ipaddr from 'ipaddr.js';
import { embeddedIPv4, withoutPort } from '../../key-resolvers/ip.js';
import { RecentMap } from '../../../engine/util/bounded-maps.js';
import { partsOf } from './network.js';
import type { AddressParts } from './prefix-table.js';

/** The full address of a client. An IPv6 address that embeds an IPv4 address counts as both; an IPv4-mapped one only as IPv4. */
export interface ClientAddress {
  readonly v4?: AddressParts | undefined;
  readonly v6?: AddressParts | undefined;
}

/** The result for a text that isn't an address. */
const NONE: ClientAddress = {};

/** Reads an address in the form that transports provide. */
export function readClientAddress(text: string): ClientAddress {
  if (isIPv4(text)) return { v4: partsOfIPv4(text) };
  const address = withoutPort(text);
  if (!ipaddr.isValid(address)) return NONE;
  const parsed = ipaddr.parse(address);
  if (!(parsed instanceof ipaddr.IPv6)) return { v4: partsOf(parsed) };
  if (parsed.isIPv4MappedAddress()) return { v4: partsOf(parsed.toIPv4Address()) };
  const embedded = embeddedIPv4(parsed.parts);
  return { v4: embedded === undefined ? undefined : partsOfIPv4(embedded), v6: parsed.parts };
}

/** Reads IPv4 addresses, which are the most frequent, much faster than a general parser. */
function partsOfIPv4(text: string): AddressParts {
  const [first, second, third, fourth] = text.split('.').map(Number) as [number, number, number, number];
  return [(first << 8) | second, (third << 8) | fourth];
}

/** The maximum length of an address with a port. A trusted proxy may send any text. */
const LONGEST_ADDRESS = 64;

/** Caches the latest addresses. */
export class RecentAddresses {
  private readonly recent = new RecentMap<ClientAddress>();

  of(text: string): ClientAddress {
    if (text.length > LONGEST_ADDRESS) return NONE;
    return this.recent.of(text, readClientAddress) ?? NONE;
  }
}
