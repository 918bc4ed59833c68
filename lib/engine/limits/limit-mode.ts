/** `'enforce'` refuses, `'shadow'` counts and reports but never refuses, `'off'` does not check the limit at all. */
export type LimitMode = 'enforce' | 'shadow' | 'off';

/** All modes. Code gives a limit one of the first two. */
export const LIMIT_MODES: readonly LimitMode[] = ['enforce', 'shadow', 'off'];
