import { isIPv4 } from 'node:net';
import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import ipaddr from 'ipaddr.js';
import { type Network, partsOf, readNetwork } from '../../../../lib/app/overrides/lists/network.js';
import { propertyRuns } from '../../../support/limits/property-runs.js';

it('reads IPv4 addresses and networks as the package for addresses does', () => {
  fc.assert(
    fc.property(fc.ipV4(), fc.option(fc.integer({ min: 0, max: 32 })), (address, length) => {
      const parsed = ipaddr.IPv4.parse(address);
      const whole = readNetwork(address) as Network;
      expect(whole).toEqual({ parts: partsOf(parsed), length: 32, text: parsed.toString() });
      if (length === null) return;
      const first = ipaddr.IPv4.networkAddressFromCIDR(`${address}/${length}`);
      const text = length === 32 ? first.toString() : `${first.toString()}/${length}`;
      expect(readNetwork(`${first.toString()}/${length}`)).toEqual({ parts: partsOf(first), length, text });
    }),
    { numRuns: propertyRuns(1000) },
  );
});

it.each(['01.2.3.4', '1.2.3', '1.2.3.4.5', '256.1.1.1', '1.2.3.4/33', '1.2.3.4/8/8', '1.2.3.4/', '/8', '1.2.3.4%a'])(
  'refuses %s',
  (text) => expect(typeof readNetwork(text)).toBe('string'),
);

it('takes for IPv4 what Node does', () => {
  const part = fc.oneof(
    fc.integer({ min: 0, max: 300 }).map(String),
    fc.constantFrom('', '00', '01', '1e1', '0x1', ' 1', '-1', '/', ':'),
  );
  fc.assert(
    fc.property(fc.array(part, { minLength: 3, maxLength: 5 }), (parts) => {
      const text = parts.join('.');
      fc.pre(!text.includes('/'));
      const read = readNetwork(text);
      expect(typeof read === 'string' ? undefined : read.text).toBe(isIPv4(text) ? text : undefined);
    }),
    { numRuns: propertyRuns(1000) },
  );
});
