import { equals, iterableEquality, jestExpect, subsetEquality } from './parts.mjs';

/** The matchers that nearly all assertions use, as Jest defines them. */
const MATCHES = {
  toBe: Object.is,
  toEqual: (actual, expected) => equals(actual, expected, [iterableEquality]),
  toMatchObject: (actual, expected) =>
    isObject(actual) && isObject(expected) && equals(actual, expected, [iterableEquality, subsetEquality]),
};

/**
 * `expect` of Jest builds an error with its stack and some 300 functions for each value that it is given. This one looks whether
 * the value matches, and builds nothing if it does. All else, what fails above all, it leaves to Jest.
 */
export function expect(actual, ...rest) {
  return rest.length === 0 ? new Expectation(actual) : jestExpect(actual, ...rest);
}
Object.setPrototypeOf(expect, jestExpect);

class Expectation {
  #actual;

  constructor(actual) {
    this.#actual = actual;
  }

  static {
    const actualOf = (expectation) => expectation.#actual;
    for (const [name, matches] of Object.entries(MATCHES)) {
      this.prototype[name] = function match(expected) {
        const actual = this.#actual;
        if (!matches(actual, expected)) {
          jestExpect(actual)[name](expected);
          throw new Error(`${name}: what did not match at first matched when it was compared again`);
        } else {
          const state = jestExpect.getState();
          state.assertionCalls++;
          state.numPassingAsserts++;
        }
      };
    }
    // Other matchers, `not`, `resolves` and `rejects`.
    const others = { get: (_target, name, expectation) => jestExpect(actualOf(expectation))[name] };
    Object.setPrototypeOf(this.prototype, new Proxy({}, others));
  }
}

function isObject(value) {
  return typeof value === 'object' && value !== null;
}
