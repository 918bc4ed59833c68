/** Marks our own guard, which finds no user: `true` if it checks, and `'follows'` if it only goes on with a check. */
export const OWN_GUARD = 'nestjs-sluice:guard';

/** Where `@UseGuards` keeps what it was given, in Nest 11 and 12. */
export const GUARDS = '__guards__';

/** Whether a class or handler has guards of its own that may find a user. */
export function bindsOtherGuard(target: object): boolean {
  return boundGuards(target).some((guard) => markOf(guard) === undefined);
}

/** Whether our own guard stands on a class or handler itself. */
export function bindsOwnGuard(target: object): boolean {
  return boundGuards(target).some(isOwnGuard);
}

function boundGuards(target: object): readonly object[] {
  return (Reflect.getMetadata(GUARDS, target) as object[] | undefined) ?? [];
}

/** Whether a guard is ours, or a class of the app's own that extends it. */
export function isOwnGuard(guard: object): boolean {
  return markOf(guard) === true;
}

function markOf(guard: object): unknown {
  // Tests replace guards by plain objects.
  const type = typeof guard === 'function' ? guard : (guard.constructor as Function | undefined);
  return type === undefined ? undefined : Reflect.getMetadata(OWN_GUARD, type);
}
