/** The messages of `rollover` and `credits`. */
export const planTermsMessages = {
  tooManyUnits: (location: string, received: number, most: number) =>
    `${location}: expected at most ${most} units for a limit with 'rollover' or 'credits', received ${received}`,
} as const;
