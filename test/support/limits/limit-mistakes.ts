/** The commonest mistakes in limits, as a user writes them. */
export const LIMIT_MISTAKES: Readonly<Record<string, string>> = {
  'an option is missing': `RateLimit({ algo: 'gcra', rate: 10 });`,
  'an option of another algorithm': `RateLimit({ algo: 'gcra', rate: 10, interval: '1m', queue: 5 });`,
  'a misspelt option': `RateLimit({ algo: 'gcra', rate: 10, interval: '1m', burts: 5 });`,
  'no algorithm, as with the throttler of Nest': `RateLimit({ limit: 10, ttl: 60_000 });`,
  'a misspelt algorithm': `RateLimit({ algo: 'token_bucket', rate: 10, interval: '1m' });`,
  'a rate that is a text': `RateLimit({ algo: 'gcra', rate: '10', interval: '1m' });`,
  'a mode that there is not': `RateLimit({ algo: 'gcra', rate: 10, interval: '1m', mode: 'off' });`,
  'a condition that is no function': `RateLimit({ algo: 'gcra', rate: 10, interval: '1m', skip: true });`,
  'a ceiling within no limit': `RateLimit({ algo: 'fixed-window', rate: 10, interval: '1m', ceiling: 20 });`,
  'limits in an array': `RateLimit([{ algo: 'gcra', rate: 10, interval: '1m' }]);`,
};

/** No message of the compiler is longer, its explanations included. */
export const MOST_LINES = 5;
