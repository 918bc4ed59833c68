import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { isDamaged, type StoredRecord, readRecord } from '../../../lib/app/overrides/override-record.js';
import { RecordReader } from '../../../lib/app/overrides/overrides-reply.js';
import { propertyRuns } from '../../support/limits/property-runs.js';

const MEMBERS = [
  'patch',
  'mode',
  'list',
  'version',
  'generation',
  'inherit',
  'expiresAt',
  'quota',
  'previousQuota',
  'by',
  'reason',
];

/** All that is known of a record, wherever it has it from. */
function seen(record: StoredRecord): unknown {
  if (isDamaged(record)) return record;
  return Object.fromEntries(MEMBERS.map((name) => [name, record[name as keyof StoredRecord]]));
}

const value = fc.constantFrom(
  '"patch":{"rate":5}',
  '"patch":{"rate":6,"burst":2}',
  '"patch":{"version":1}',
  '"patch":null',
  '"mode":"off"',
  '"list":"deny"',
  '"list":"nobody"',
  '"version":1,"list":"allow"',
);
const version = fc.oneof(
  fc.integer({ min: 0, max: 30 }).map(String),
  fc.constantFrom('01', '00', '-1', '1.5', '1e3', ' 7', '9007199254740991', '9007199254740993', 'null', '""', ''),
);
const name = fc.constantFrom('"version":', '"version":', '"version":', '"version": ', '"version" :', '"others":');
const end = fc.constantFrom(
  '}',
  ',"reason":"a \\"version\\":1"}',
  ',"version":3}',
  ',"by":"ann","reason":"\u{1f600}"}',
  '',
  ',}',
);
const record = fc
  .tuple(value, name, version, fc.constantFrom('null', '1000', '2000'), end)
  .map(
    ([is, named, number, expiresAt, rest]) =>
      `{${is},${named}${number},"generation":0,"inherit":"keep","expiresAt":${expiresAt},"quota":5,"previousQuota":1${rest}`,
  );

it('reads each record as if it were the only one', () => {
  fc.assert(
    fc.property(fc.array(record, { maxLength: 200 }), (texts) => {
      const reader = new RecordReader();
      for (const text of texts) expect(seen(reader.read(text))).toEqual(seen(readRecord(text)));
    }),
    { numRuns: propertyRuns(300) },
  );
});

const textOf = (version: number) =>
  `{"patch":{"rate":5},"version":${version},"generation":0,"inherit":"keep","expiresAt":null,"quota":5,"previousQuota":1}`;

it('parses records once that differ in their version only', () => {
  const reader = new RecordReader();
  const [one, other] = [9, 100_000].map((version) => reader.read(textOf(version))) as [StoredRecord, StoredRecord];
  expect(seen(other)).toMatchObject({ patch: { rate: 5 }, version: 100_000 });
  expect((other as { patch: unknown }).patch).toBe((one as { patch: unknown }).patch);
});
