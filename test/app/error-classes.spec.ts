import { describe, expect, it } from '@jest/globals';
import {
  type CheckResult,
  RateLimitArgumentError,
  RateLimitConfigError,
  RateLimitDeniedException,
  RateLimitExceededException,
  RateLimitStoreError,
  RateLimitTimeoutError,
  RateLimitWaitersError,
} from '../../lib/index.js';

const decision = {
  allowed: false,
  limit: 'api',
  quota: 1,
  remaining: 0,
  retryAfterMs: 1000,
  resetAfterMs: 1000,
  delayMs: 0,
  source: 'memory',
} as const;
const result: CheckResult = { allowed: false, decisions: [decision], tightest: decision, delayMs: 0 };

describe('errors that an app makes itself', () => {
  it.each([
    [RateLimitConfigError, 'SLUICE_INVALID_OPTION'],
    [RateLimitArgumentError, 'SLUICE_INVALID_ARGUMENT'],
    [RateLimitStoreError, 'SLUICE_STORE_FAILED'],
    [RateLimitWaitersError, 'SLUICE_TOO_MANY_WAITERS'],
  ])('as a %p have the code of their class, or their own, and their cause', (Class, code) => {
    const plain = new Class('gone');
    expect([plain.code, plain.message, 'cause' in plain]).toEqual([code, 'gone', false]);
    expect(new Class().message).toBe('');
    expect(new Class('gone', { cause: 7 })).toMatchObject({ code, cause: 7 });
    class Own extends Class {}
    const own = new Own('gone', { cause: 7, code: 'SLUICE_DENIED' });
    expect(own).toBeInstanceOf(Class);
    expect(own).toMatchObject({ code: 'SLUICE_DENIED', cause: 7, name: Class.name });
    // It does not begin with the constructors.
    expect((own as Error).stack!.split('\n')[1]).toContain('error-classes.spec');
  });

  it('by a timeout keep the decision as second argument', () => {
    const error = new RateLimitTimeoutError('late', decision);
    expect([error.code, error.decision]).toEqual(['SLUICE_TIMEOUT', decision]);
    expect(new RateLimitTimeoutError('late', undefined, { code: 'SLUICE_DENIED' }).code).toBe('SLUICE_DENIED');
  });

  it.each([
    [new RateLimitExceededException(result), 'SLUICE_LIMIT_EXCEEDED'],
    [new RateLimitDeniedException(), 'SLUICE_DENIED'],
  ])('%p have a code that the response lacks, and that the app may replace', (exception, code) => {
    expect(exception.code).toBe(code);
    expect(JSON.stringify([exception, exception.getResponse()])).not.toContain('SLUICE');
    expect(Object.assign(exception, { code: 'TOO_FAST' }).code).toBe('TOO_FAST');
  });
});
