const ROUTES = 20;

/** The paths of the app of 20 routes. */
export const pathsOf = () => Array.from({ length: ROUTES }, (_, index) => `/route-${index}`);
