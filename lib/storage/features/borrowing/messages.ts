/** The messages of limits that borrow from the limits that they are within, and of those that lend. */
export const borrowMessages = {
  ceilingExpected: (rate: number) => `a whole number >= ${rate}, the 'rate'`,
} as const;
