import { keyText as written } from '../../engine/limits/identity.js';
import { keySchemes } from './index.js';

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
