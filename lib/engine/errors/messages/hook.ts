/** The messages of hooks. */
export const hookMessages = {
  failed: (hook: string, limit: string | undefined) =>
    `the hook '${hook}' of ${limit === undefined ? 'RateLimitModule' : `limit '${limit}'`} failed; requests are not affected`,
} as const;
