import { createHash } from 'node:crypto';
import { brotliDecompressSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import { PAGE_SCRIPT, PAGE_STYLE } from '../../lib/console/page.generated.js';

const files = { script: PAGE_SCRIPT, style: PAGE_STYLE };

describe('the files of the console', () => {
  it('take less than 80 kB compressed', () => {
    const sizes = Object.values(files).map(({ brotli }) => Buffer.from(brotli, 'base64').length);
    expect(sizes.reduce((sum, size) => sum + size)).toBeLessThan(80_000);
  });

  it.each(Object.entries(files))('the %s has the hash of its contents', (_name, { brotli, hash }) => {
    const contents = brotliDecompressSync(Buffer.from(brotli, 'base64'));
    expect(hash).toBe(createHash('sha256').update(contents).digest('hex').slice(0, 16));
  });

  it.each(Object.entries(files))('the %s carries the licences of what is bundled', (_name, { brotli }) => {
    const text = brotliDecompressSync(Buffer.from(brotli, 'base64')).toString();
    expect(text).toMatch(/^\/\*!\npreact /);
    expect(text.match(/Permission is hereby granted/g)).toHaveLength(2);
  });

  it.each(Object.entries(files))('the %s loads nothing from elsewhere', (_name, { brotli }) => {
    const text = brotliDecompressSync(Buffer.from(brotli, 'base64')).toString();
    expect(text).not.toMatch(/@import|url\(|(?:src|href)="?(?:https?:)?\/\//);
  });
});
