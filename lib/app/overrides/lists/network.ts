import { isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';
import { listMessages } from '../../../engine/errors/messages/rates.js';
import { RecentMap } from '../../../engine/util/bounded-maps.js';
import { embeddedIPv4, withoutPort } from '../../key-resolvers/ip.js';

/** A network, or a single address. */
export interface Network {
  readonly parts: AddressParts;
  /** The number of leading bits that all of its addresses share. */
  readonly length: number;
  /** Its canonical text. A single address has no prefix length. */
  readonly text: string;
}

/** A prefix length in CIDR notation. */
const LENGTH = /^(?:0|[1-9]\d{0,2})$/;
/** The bits of an IPv6 address before the IPv4 address that it maps. */
const MAPPED_BITS = 96;
/** The code of the digit 0, and its distance from that of the dot. */
const ZERO = 48;
const DOT = -2;

/** Reads an address or a network in CIDR notation; returns a text that describes the expected form if it is neither. */
export function readNetwork(text: unknown): Network | string {
  if (typeof text !== 'string') return listMessages.networkExpected();
  const slash = text.indexOf('/');
  const address = slash < 0 ? text : text.slice(0, slash);
  const bits = slash < 0 ? undefined : text.slice(slash + 1);
  const v4 = partsOfV4(address);
  if (v4 === undefined && (!isIPv6(address) || address.includes('%'))) return listMessages.networkExpected();
  if (bits !== undefined && !LENGTH.test(bits)) return listMessages.networkExpected();
  const allBits = v4 === undefined ? 128 : 32;
  const length = bits === undefined ? allBits : Number(bits);
  if (length > allBits) return listMessages.networkExpected();
  if (v4 !== undefined) return network(v4, length, address);
  const parsed = ipaddr.IPv6.parse(address);
  // An IPv4 address written as IPv6 is the same address.
  if (!parsed.isIPv4MappedAddress() || length < MAPPED_BITS) {
    return network(parsed.parts, length, parsed.toRFC5952String());
  }
  const mapped = parsed.toIPv4Address();
  return network(partsOf(mapped), length - MAPPED_BITS, mapped.toString());
}

function network(parts: AddressParts, length: number, text: string): Network | string {
  if (length === 16 * parts.length) return { parts, length, text };
  const common = parts.map((part, index) => part & (0xffff << (16 - Math.min(Math.max(length - 16 * index, 0), 16))));
  if (common.every((part, index) => part === parts[index])) {
    return { parts, length, text: `${text}/${length}` };
  }
  // With a typing error in either half, the entry would match a huge number of other addresses.
  return listMessages.hostBits(`${textOf(common)}/${length}`, text);
}

export function partsOf({ octets }: ipaddr.IPv4): AddressParts {
  const [first, second, third, fourth] = octets as [number, number, number, number];
  return [(first << 8) | second, (third << 8) | fourth];
}

/**
 * The bits of an IPv4 address in the only form that Node uses: four decimals without leading zeros. Most addresses are of that kind, and
 * this is much faster than a general parser.
 */
function partsOfV4(address: string): AddressParts | undefined {
  let bits = 0;
  let dots = 0;
  let octet = -1;
  for (let index = 0; index < address.length; index++) {
    const digit = address.charCodeAt(index) - ZERO;
    if (digit === DOT && octet >= 0 && dots < 3) {
      bits = (bits << 8) | octet;
      octet = -1;
      dots++;
    } else {
      if (digit < 0 || digit > 9 || octet === 0) return undefined;
      octet = octet < 0 ? digit : 10 * octet + digit;
      if (octet > 255) return undefined;
    }
  }
  if (dots < 3 || octet < 0) return undefined;
  bits = (bits << 8) | octet;
  return [bits >>> 16, bits & 0xffff];
}

function textOf(parts: AddressParts): string {
  if (parts.length === 8) return new ipaddr.IPv6([...parts]).toRFC5952String();
  return parts.flatMap((part) => [part >> 8, part & 0xff]).join('.');
}

/** The bits of an address in groups of 16: two for IPv4, eight for IPv6. */
export type AddressParts = readonly number[];

/** Values per network of one address family. There is one map per prefix length, and few lengths are in use. */
export class PrefixTable<T> {
  private readonly byLength = new Map<number, Map<string | number, T>>();
  /** The lengths in use, the longest first. */
  private lengths: readonly number[] = [];

  set(parts: AddressParts, length: number, value: T): void {
    let values = this.byLength.get(length);
    if (values === undefined) {
      this.byLength.set(length, (values = new Map()));
      this.sortLengths();
    }
    values.set(prefixOf(parts, length), value);
  }

  delete(parts: AddressParts, length: number): void {
    const values = this.byLength.get(length);
    values?.delete(prefixOf(parts, length));
    if (values?.size !== 0) return;
    this.byLength.delete(length);
    this.sortLengths();
  }

  /** The value of the smallest network that contains an address. */
  find(address: AddressParts): T | undefined {
    for (const length of this.lengths) {
      const value = this.byLength.get(length)!.get(prefixOf(address, length));
      if (value !== undefined) return value;
    }
    return undefined;
  }

  private sortLengths(): void {
    this.lengths = [...this.byLength.keys()].sort((one, other) => other - one);
  }
}

/** The leading bits: a number for IPv4, a text with one character per 16 bits for IPv6. */
function prefixOf(parts: AddressParts, length: number): string | number {
  if (parts.length === 2) return length === 0 ? 0 : ((parts[0]! << 16) | parts[1]!) & (-1 << (32 - length));
  const whole = length >> 4;
  const rest = length & 15;
  let prefix = '';
  for (let index = 0; index < whole; index++) prefix += String.fromCharCode(parts[index]!);
  return rest === 0 ? prefix : prefix + String.fromCharCode(parts[whole]! & (0xffff << (16 - rest)));
}

/** The full address of a client. An IPv6 address that embeds an IPv4 address counts as both; an IPv4-mapped one only as IPv4. */
export interface ClientAddress {
  readonly v4?: AddressParts | undefined;
  readonly v6?: AddressParts | undefined;
}

/** The result for a text that isn't an address. */
const NONE: ClientAddress = {};

/** Reads an address in the form that transports provide. */
export function readClientAddress(text: string): ClientAddress {
  const v4 = partsOfV4(text);
  if (v4 !== undefined) return { v4 };
  const address = withoutPort(text);
  if (!ipaddr.isValid(address)) return NONE;
  const parsed = ipaddr.parse(address);
  if (!(parsed instanceof ipaddr.IPv6)) return { v4: partsOf(parsed) };
  if (parsed.isIPv4MappedAddress()) return { v4: partsOf(parsed.toIPv4Address()) };
  const embedded = embeddedIPv4(parsed.parts);
  return { v4: embedded === undefined ? undefined : partsOfV4(embedded), v6: parsed.parts };
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
