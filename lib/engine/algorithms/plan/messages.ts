/** The messages of `rollover` and `credits`. */
export const planTermsMessages = {
  tooManyUnits: (location: string, got: number, most: number) =>
    `${location}: a limit with 'rollover' or 'credits' allows ${got} units, wants at most ${most}`,
} as const;
