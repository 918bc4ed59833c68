/** The messages of limits with a candidate. */
export const candidateMessages = {
  holds: (location: string, got: string, algo: string) =>
    `${location}: option 'algo' is '${got}' beside a limit of '${algo}', wants both of 'concurrency' or none`,
  sameAsLimit: (location: string, option: string, own: readonly string[]) =>
    `${location}: option '${option}' is that of the limit, wants only ${own.join(', ')}`,
  anchor: (location: string) =>
    `${location}: option 'anchor' is a function, wants a fixed one: the function of the limit itself is asked`,
} as const;
