/** How the identities of the package's own keys begin. */
export const BUILT_IN = /^(?:ip|user|header):/;
