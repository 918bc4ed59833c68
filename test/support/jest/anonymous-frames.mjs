const ANONYMOUS = /^( +at )<anonymous> \((.+)\)$/gm;

/**
 * Takes the name `<anonymous>` out of the stacks of an error and its causes, as V8 itself writes them. Node adds it when it maps a
 * stack, and Jest hides lines that have it: its code frame would show another line than the one that failed.
 */
export function showAnonymousFrames(error, seen = new Set()) {
  if (!(error instanceof Error) || seen.has(error)) return;
  seen.add(error);
  if (typeof error.stack === 'string') Reflect.set(error, 'stack', error.stack.replaceAll(ANONYMOUS, '$1$2'));
  for (const inner of [error.cause, ...(error.errors ?? [])]) showAnonymousFrames(inner, seen);
}
