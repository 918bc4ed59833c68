/** The messages of hooks. */
export const hookMessages = {
  failed: (hook: string, limit: string | undefined) => `${nameOf(hook, limit)} failed; requests are not affected`,
  nested: (hook: string, limit: string | undefined) =>
    `${nameOf(hook, limit)} was left out of a decision that hooks caused`,
  causesItself: () => 'hooks call limits whose decisions call hooks again: leave out decisions of these limits',
} as const;

function nameOf(hook: string, limit: string | undefined): string {
  return `the hook '${hook}' of ${limit === undefined ? 'RateLimitModule' : `limit '${limit}'`}`;
}
