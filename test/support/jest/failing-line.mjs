const ANONYMOUS = /^( +at )<anonymous> \((.+)\)$/gm;
/** Lines of what stands between a spec and the `expect` of Jest. */
const OWN_EXPECT = /^ +at .+\/jest\/quick-expect\.mjs:.+\n/gm;

/**
 * Makes the stacks of an error and its causes such that the code frame of Jest shows the line that failed. Node adds the name
 * `<anonymous>` when it maps a stack, and Jest hides lines that have it; V8 itself writes none.
 */
export function showFailingLine(error, seen = new Set()) {
  if (!(error instanceof Error) || seen.has(error)) return;
  seen.add(error);
  if (typeof error.stack === 'string') {
    Reflect.set(error, 'stack', error.stack.replaceAll(ANONYMOUS, '$1$2').replaceAll(OWN_EXPECT, ''));
  }
  for (const inner of [error.cause, ...(error.errors ?? [])]) showFailingLine(inner, seen);
}
