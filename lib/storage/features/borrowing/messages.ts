/** The messages of limits that borrow of those that they are within, and of those that lend. */
export const borrowMessages = {
  ceilingWants: (rate: number) => `a whole number >= ${rate}, the 'rate'`,
} as const;
