import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import ipaddr from 'ipaddr.js';
import {
  type AddressParts,
  PrefixTable,
  readClientAddress,
  readNetwork,
} from '../../../../lib/app/overrides/lists/network.js';
import { propertyRuns } from '../../../support/limits/property-runs.js';

/** Few bits differ, so that networks lie in each other. */
const part = fc.oneof(fc.constantFrom(0, 1, 0x8000, 0xffff), fc.integer({ min: 0, max: 0xffff }));
const partsOf = (count: number) => fc.array(part, { minLength: count, maxLength: count });
const lengthOf = (bits: number) =>
  fc.oneof(fc.constantFrom(0, 1, 15, 16, 17, bits - 1, bits), fc.integer({ min: 0, max: bits }));

const parse = (parts: AddressParts) =>
  parts.length === 8 ? new ipaddr.IPv6([...parts]) : new ipaddr.IPv4(parts.flatMap((each) => [each >> 8, each & 0xff]));

/** What no table has to do: looks at every network. */
class NaiveTable {
  readonly networks: { parts: AddressParts; length: number; value: number }[] = [];

  set(parts: AddressParts, length: number, value: number): void {
    this.delete(parts, length);
    this.networks.push({ parts, length, value });
  }

  delete(parts: AddressParts, length: number): void {
    const index = this.networks.findIndex((each) => each.length === length && matches(parts, each.parts, length));
    if (index >= 0) this.networks.splice(index, 1);
  }

  find(address: AddressParts): number | undefined {
    const matching = this.networks.filter(({ parts, length }) => matches(address, parts, length));
    return matching.toSorted((one, other) => other.length - one.length)[0]?.value;
  }
}

function matches(one: AddressParts, other: AddressParts, length: number): boolean {
  return (parse(one) as ipaddr.IPv6).match(parse(other), length);
}

describe.each([
  ['IPv4', 2],
  ['IPv6', 8],
] as const)('a table of networks of %s', (_, count) => {
  it('finds what a look at every network finds', () => {
    const change = fc.record({ parts: partsOf(count), length: lengthOf(16 * count), drop: fc.boolean() });
    fc.assert(
      fc.property(
        fc.array(change, { maxLength: 40 }),
        fc.array(partsOf(count), { minLength: 1, maxLength: 20 }),
        (changes, addresses) => {
          const [table, naive] = [new PrefixTable<number>(), new NaiveTable()];
          for (const [value, { parts, length, drop }] of changes.entries()) {
            table.set(parts, length, value);
            naive.set(parts, length, value);
            if (!drop) continue;
            const { parts: other, length: otherLength } = changes[value >> 1]!;
            table.delete(other, otherLength);
            naive.delete(other, otherLength);
          }
          for (const address of [...addresses, ...changes.map(({ parts }) => parts)]) {
            expect(table.find(address)).toBe(naive.find(address));
          }
        },
      ),
      { numRuns: propertyRuns(300) },
    );
  });
});

const textOf = (text: unknown) => {
  const network = readNetwork(text);
  return typeof network === 'string' ? network : [network.text, network.parts.length, network.length];
};

describe('a network', () => {
  it.each<[string, [string, number, number]]>([
    ['203.0.113.7', ['203.0.113.7', 2, 32]],
    ['203.0.113.7/32', ['203.0.113.7', 2, 32]],
    ['10.0.0.0/8', ['10.0.0.0/8', 2, 8]],
    ['0.0.0.0/0', ['0.0.0.0/0', 2, 0]],
    ['::/0', ['::/0', 8, 0]],
    ['2001:DB8::/32', ['2001:db8::/32', 8, 32]],
    ['2001:0db8:0:0:0:0:0:1', ['2001:db8::1', 8, 128]],
    ['::ffff:203.0.113.7', ['203.0.113.7', 2, 32]],
    ['::FFFF:cb00:7107', ['203.0.113.7', 2, 32]],
    ['::ffff:10.0.0.0/104', ['10.0.0.0/8', 2, 8]],
    ['::ffff:0:0/96', ['0.0.0.0/0', 2, 0]],
  ])('%s is written in one way', (text, expected) => expect(textOf(text)).toEqual(expected));

  it('is the same, however it is written', () => {
    fc.assert(
      fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), (text) => {
        const network = readNetwork(text);
        if (typeof network === 'string') throw new Error(network);
        expect(readNetwork(network.text)).toEqual(network);
        expect(readNetwork(text.toUpperCase())).toEqual(network);
        const { v4, v6 } = readClientAddress(text);
        expect([v4, v6]).toContainEqual(network.parts);
      }),
      { numRuns: propertyRuns(300) },
    );
  });

  it.each<unknown>([
    '',
    ' ',
    '/',
    '/8',
    '10.0.0.0/',
    '10.0.0.0/33',
    '10.0.0.0/-1',
    '10.0.0.0/+8',
    '10.0.0.0/08',
    '10.0.0.0/8.0',
    '10.0.0.0/1e1',
    '10.0.0.0/8/8',
    '10.0.0.0/255.0.0.0',
    '10.0.0/24',
    '10.1',
    '0x0a.0.0.1',
    '010.0.0.1',
    '10.0.0.256',
    ' 10.0.0.1',
    '10.0.0.1\n',
    '10.0.0.1:80',
    '::/129',
    '[::1]',
    'fe80::1%eth0',
    'fe80::%eth0/64',
    ':::',
    'localhost',
    '*',
    '10.*',
    '1'.repeat(100_000),
    7,
    null,
    undefined,
    {},
    ['10.0.0.1'],
  ])('is not %j', (text) => expect(textOf(text)).toContain('an IP address, or a network in CIDR notation'));

  it.each([
    ['10.0.0.1/8', "the network '10.0.0.0/8' or the address '10.0.0.1'"],
    ['10.0.0.1/0', "the network '0.0.0.0/0' or the address '10.0.0.1'"],
    ['2001:db8::1/32', "the network '2001:db8::/32' or the address '2001:db8::1'"],
    ['::ffff:10.0.0.1/104', "the network '10.0.0.0/8' or the address '10.0.0.1'"],
  ])('with bits behind its prefix, as %s, is asked back', (text, wants) => expect(textOf(text)).toBe(wants));
});

describe('the address of a client', () => {
  const v4 = [0xcb00, 0x7107];

  it.each([
    ['203.0.113.7', { v4 }],
    ['203.0.113.7:4711', { v4 }],
    ['::ffff:203.0.113.7', { v4 }],
    ['[::FFFF:cb00:7107]:80', { v4 }],
    ['64:ff9b::cb00:7107', { v4, v6: [0x64, 0xff9b, 0, 0, 0, 0, 0xcb00, 0x7107] }],
    ['2002:cb00:7107::1', { v4, v6: [0x2002, 0xcb00, 0x7107, 0, 0, 0, 0, 1] }],
    ['[2001:db8::1]', { v6: [0x2001, 0xdb8, 0, 0, 0, 0, 0, 1] }],
    ['fe80::1%eth0', { v6: [0xfe80, 0, 0, 0, 0, 0, 0, 1] }],
    ['::1', { v6: [0, 0, 0, 0, 0, 0, 0, 1] }],
    ['unknown', {}],
    ['', {}],
  ])('%s is whole', (text, expected) => expect(readClientAddress(text)).toEqual(expected));
});
