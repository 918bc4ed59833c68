import { keyText as written } from '../../engine/limits/identity.js';
import { isClass } from '../../engine/util/objects.js';
import { classKey, functionKey } from './custom.js';
import { globalKey } from './global.js';
import { headerKey } from './header.js';
import { ipKey } from './ip.js';
import type { KeyForm, KeyScheme } from './key-scheme.js';
import { userKey } from './user.js';

export { addressForm } from './ip.js';

/** Every form of `key`, in the order in which they are matched. To add a form, add it here. */
export const keySchemes: KeyScheme[] = [ipKey, userKey, globalKey, headerKey, functionKey, classKey];

/** The form of the identities of a `key`; `undefined` if they may be any text. */
export function formOf(key: unknown): KeyForm | undefined {
  if (typeof key !== 'string') return undefined;
  for (const scheme of keySchemes) {
    const parameter = scheme.parse(key, '');
    if (parameter !== undefined) return scheme.formOf?.(parameter);
  }
  return undefined;
}

/** The forms of `key` that can be written as text. */
export const keyText = {
  ...written,
  isValid: (value: unknown) => typeof value === 'string' && keySchemes.some((scheme) => isOf(scheme, value)),
};

function isOf(scheme: (typeof keySchemes)[number], value: string): boolean {
  try {
    return scheme.parse(value, '') !== undefined;
  } catch {
    return false;
  }
}

/** The text of a limit's `key`. */
export function nameOfKey(key: unknown): string {
  if (typeof key !== 'function') return String(key);
  if (isClass(key)) return key.name;
  return key.name === '' || key.name === 'key' ? 'a function' : `the function ${key.name}`;
}
