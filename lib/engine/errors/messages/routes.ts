/** The messages about routes without a limit. */
export const routeMessages = {
  nothingBuilt: (tried: readonly string[]) =>
    `no built app found: expected ${tried.join(', ')}. Build the app, or pass the path of its built entry`,
  noAppMade: (file: string) =>
    `${file} creates no app, and exports no module class. Pass a built file that calls NestFactory.create, or '<file>#<class>' of a module`,
  failedEarly: (file: string, reason: string) =>
    `${file} failed after it had created the app, which runs without its providers here: ${reason}. Later steps of the file are ` +
    'missing below, such as a prefix or versions',
  notAlone: (file: string) =>
    `${file} is a module without its start file: a prefix and versions that main.js sets are missing in the paths`,
} as const;
