import { isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';
import { listMessages } from '../../../engine/errors/messages/rates.js';
import type { AddressParts } from './prefix-table.js';

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
  // Lists may contain many IPv4 addresses, so these aren't read with the general parser.
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

/** The bits of an address in groups of 16. */
export function partsOf(address: ipaddr.IPv4 | ipaddr.IPv6): AddressParts {
  if (address instanceof ipaddr.IPv6) return address.parts;
  const [first, second, third, fourth] = address.octets as [number, number, number, number];
  return [(first << 8) | second, (third << 8) | fourth];
}

/** The bits of an IPv4 address in the only form that Node uses: four decimals without leading zeros. */
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
