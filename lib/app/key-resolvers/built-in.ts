/** The prefixes of identities that the built-in keys make. */
export const BUILT_IN = /^(?:ip|user|header):/;
