/** The options of an app whose operators change a limit; each prefix is an app of its own. */
export const optionsOf = (redis, prefix) => ({
  redis,
  prefix,
  define: { api: { algo: 'token-bucket', rate: 100, interval: '1m' } },
});
