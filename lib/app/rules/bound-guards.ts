/**
 * Marks our own guards, which set no user: `true` if the guard checks, `'follows'` if it only continues a check, and `'shared'` if
 * it checks in apps that bind a guard to all routes.
 */
export const OWN_GUARD = 'nestjs-sluice:guard';

/** The metadata key of `@UseGuards`, in Nest 11 and 12. */
export const GUARDS = '__guards__';

/** Whether a class or handler has guards of its own that may set a user. */
export function bindsOtherGuard(target: object): boolean {
  return boundGuards(target).some((guard) => markOf(guard) === undefined);
}

/** Whether our own guard is bound to a class or handler itself. */
export function bindsOwnGuard(target: object): boolean {
  return boundGuards(target).some(isOwnGuard);
}

/** Whether a class or handler has a guard whose checks the interceptor has to follow. */
export function bindsCheckingGuard(target: object): boolean {
  return boundGuards(target).some((guard) => isOwnGuard(guard) || markOf(guard) === 'shared');
}

/** The guards that `@UseGuards` binds to a class or handler. */
export function boundGuards(target: object): readonly object[] {
  return (Reflect.getMetadata(GUARDS, target) as object[] | undefined) ?? [];
}

/** Whether a guard is ours, or a subclass of it in the app. */
export function isOwnGuard(guard: object): boolean {
  return markOf(guard) === true;
}

function markOf(guard: object): unknown {
  // Tests may replace guards by plain objects.
  const type = typeof guard === 'function' ? guard : (guard.constructor as Function | undefined);
  return type === undefined ? undefined : Reflect.getMetadata(OWN_GUARD, type);
}
