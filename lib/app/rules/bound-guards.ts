/**
 * Marks this library's guards, which never set a user: `true` if the guard checks limits, `'follows'` if it only continues a check, and
 * `'shared'` if it checks limits in apps that bind a guard to all routes.
 */
export const OWN_GUARD = 'nestjs-sluice:guard';

/** The metadata key of `@UseGuards`, in Nest 11 and 12. */
export const GUARDS = '__guards__';

/** Returns true if a class or handler has guards of the app, which may set a user. */
export function bindsOtherGuard(target: object): boolean {
  return boundGuards(target).some((guard) => markOf(guard) === undefined);
}

/** Returns true if `RateLimitGuard` is bound to the class or handler itself. */
export function bindsOwnGuard(target: object): boolean {
  return boundGuards(target).some(isOwnGuard);
}

/** Returns true if a class or handler has a guard whose checks the interceptor has to continue. */
export function bindsCheckingGuard(target: object): boolean {
  return boundGuards(target).some((guard) => isOwnGuard(guard) || markOf(guard) === 'shared');
}

/** The guards that `@UseGuards` binds to a class or handler. */
export function boundGuards(target: object): readonly object[] {
  return (Reflect.getMetadata(GUARDS, target) as object[] | undefined) ?? [];
}

/** Returns true for `RateLimitGuard` and subclasses of it. */
export function isOwnGuard(guard: object): boolean {
  return markOf(guard) === true;
}

function markOf(guard: object): unknown {
  // Tests may replace guards with plain objects.
  const type = typeof guard === 'function' ? guard : (guard.constructor as Function | undefined);
  return type === undefined ? undefined : Reflect.getMetadata(OWN_GUARD, type);
}
