import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';

/** A certificate and its key, as PEM. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

const OIDS = {
  ecdsaWithSha256: '2a8648ce3d040302',
  commonName: '550403',
  subjectAltName: '551d11',
  basicConstraints: '551d13',
} as const;

/** A certificate for 127.0.0.1 and localhost that holds for a day; it is its own authority. */
export function selfSigned(name = 'test'): Certificate {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const algorithm = sequence(oid(OIDS.ecdsaWithSha256));
  const names = sequence(tagged(0x31, sequence(oid(OIDS.commonName), tagged(0x0c, Buffer.from(name)))));
  const serial = tagged(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)]));
  const version = tagged(0xa0, tagged(0x02, Buffer.from([2])));
  const dayMs = 86_400_000;
  const validity = sequence(time(Date.now() - dayMs), time(Date.now() + dayMs));
  const addresses = sequence(tagged(0x82, Buffer.from('localhost')), tagged(0x87, Buffer.from([127, 0, 0, 1])));
  const isAuthority = sequence(tagged(0x01, Buffer.from([0xff])));
  const extensions = sequence(extension(OIDS.basicConstraints, isAuthority), extension(OIDS.subjectAltName, addresses));
  const subjectKey = publicKey.export({ type: 'spki', format: 'der' });
  const body = sequence(version, serial, algorithm, names, validity, names, subjectKey, tagged(0xa3, extensions));
  return {
    cert: pem(sequence(body, algorithm, bits(sign('sha256', body, privateKey)))),
    key: exported(privateKey),
  };
}

/** A value of DER: its tag, its length, its content. */
function tagged(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const head = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...head]), content]);
}

function sequence(...parts: Buffer[]): Buffer {
  return tagged(0x30, Buffer.concat(parts));
}

function oid(hex: string): Buffer {
  return tagged(0x06, Buffer.from(hex, 'hex'));
}

function bits(content: Buffer): Buffer {
  return tagged(0x03, Buffer.concat([Buffer.from([0]), content]));
}

/** UTCTime, to the second. */
function time(ms: number): Buffer {
  return tagged(0x17, Buffer.from(`${new Date(ms).toISOString().replaceAll(/\D/g, '').slice(2, 14)}Z`));
}

function extension(id: string, value: Buffer): Buffer {
  return sequence(oid(id), tagged(0x04, value));
}

function pem(der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n');
}

function exported(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }) as string;
}
