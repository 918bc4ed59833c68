import { describe, expect, it } from '@jest/globals';
import { toldBy } from '../../playground/live/rate-limit-headers.js';

const told = (headers: Record<string, string>) => toldBy(new Headers(headers));

describe('what an answer tells of its limits', () => {
  it('is read from both headers', () => {
    const headers = {
      RateLimit: '"burst";r=38;t=1, "token-bucket:2/10s";r=0;t=5',
      'RateLimit-Policy': '"burst";q=40;w=2, "token-bucket:2/10s";q=2;w=10',
    };
    expect(told(headers)).toEqual([
      { limit: 'burst', quota: 40, left: 38, wait: 1, window: 2 },
      { limit: 'token-bucket:2/10s', quota: 2, left: 0, wait: 5, window: 10 },
    ]);
  });

  it('does not need a policy, nor a time', () => {
    expect(told({ RateLimit: '"a, \\"quoted\\" one";r=3' })).toEqual([
      { limit: 'a, "quoted" one', quota: undefined, left: 3, wait: 0 },
    ]);
  });

  it.each([{}, { RateLimit: 'limit=10, remaining=3' }, { RateLimit: '"broken' }, { RateLimit: '"none";t=5' }])(
    'is nothing for %j',
    (headers) => expect(told(headers)).toEqual([]),
  );
});
