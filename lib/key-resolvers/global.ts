import type { Identify } from './key-resolver.js';

/** Counts all requests together. */
export const globally: Identify = () => 'global';
