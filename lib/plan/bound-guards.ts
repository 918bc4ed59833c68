/** Marks our own guard, which finds no user. */
export const OWN_GUARD = 'nestjs-sluice:guard';

/** Where `@UseGuards` keeps what it was given, in Nest 11 and 12. */
export const GUARDS = '__guards__';

/** Whether a class or handler has guards of its own that may find a user. */
export function bindsOtherGuard(target: object): boolean {
  return boundGuards(target).some((guard) => !isOwn(guard));
}

/** Whether our own guard stands on a class or handler itself. */
export function bindsOwnGuard(target: object): boolean {
  return boundGuards(target).some(isOwn);
}

function boundGuards(target: object): readonly object[] {
  return (Reflect.getMetadata(GUARDS, target) as object[] | undefined) ?? [];
}

function isOwn(guard: object): boolean {
  return Reflect.getMetadata(OWN_GUARD, typeof guard === 'function' ? guard : guard.constructor) === true;
}
