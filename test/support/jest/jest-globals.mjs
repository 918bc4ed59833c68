/** Stands in for `@jest/globals`; each spec has an instance of its own. */
import { currentGlobals } from './current-spec.mjs';

export { expect } from './quick-expect.mjs';
export const { afterAll, afterEach, beforeAll, beforeEach, describe, it, jest, test } = currentGlobals();
