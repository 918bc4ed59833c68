/** The token of the console's settings. */
export const CONSOLE_SETTINGS = Symbol('CONSOLE_SETTINGS');
/** The token of the console's routes. */
export const CONSOLE_ROUTES = Symbol('CONSOLE_ROUTES');
