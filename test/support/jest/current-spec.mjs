/** What `@jest/globals` gives to the spec that runs. */
let globals;

export function beginSpec(given) {
  globals = given;
}

export function endSpec() {
  globals = undefined;
}

export function currentGlobals() {
  return globals;
}
