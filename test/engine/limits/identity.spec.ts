import { describe, expect, it } from '@jest/globals';
import { CompiledLimit } from '../../../lib/testing/store/index.js';
import { counterId, lineageId } from '../../../lib/engine/limits/counter.js';
import { boundedIdentity, hashIdentity } from '../../../lib/engine/limits/identity.js';

describe('an identity in the key of a map', () => {
  const longest = 'x'.repeat(64);

  it('stands for itself up to 64 characters', () => {
    expect([boundedIdentity('user:42'), boundedIdentity(longest)]).toEqual(['\nuser:42', `\n${longest}`]);
  });

  it('is a hash of 43 characters beyond', () => {
    expect(boundedIdentity(`${longest}x`)).toMatch(/^\r[\w-]{43}$/);
    expect(boundedIdentity('y'.repeat(10_000))).toHaveLength(44);
  });

  it('is never that of another', () => {
    const identities = [
      longest,
      `${longest}x`,
      `${longest}y`,
      hashIdentity(`${longest}x`),
      `${longest}\uD800`,
      `${longest}\uDBFF`,
    ];
    expect(new Set(identities.map(boundedIdentity)).size).toBe(identities.length);
  });
});

const limitOf = (generation: number) =>
  new CompiledLimit(
    { algo: 'gcra', rate: 1, interval: '1s' },
    { location: 'test', name: 'login', namespace: '/a', generation },
  );

describe('the key of a counter', () => {
  it('is of a limit, its generation and an identity', () => {
    expect(counterId(limitOf(0), 'user:42')).toBe('/a:login:gd\nuser:42');
    expect(counterId(limitOf(2), 'user:42')).toBe('/a:login:gd.2\nuser:42');
  });

  it('is of all generations of a limit at once', () => {
    expect([0, 2].map((generation) => lineageId(limitOf(generation), 'user:42'))).toEqual(
      Array.from({ length: 2 }, () => '/a:login:gd\nuser:42'),
    );
  });
});
