import { text } from '../../engine/options/kinds.js';
import { keySchemes } from './index.js';

/** The forms of `key` that can be written as text. */
export const keyText = {
  ...text("'ip', 'user', 'global' or 'header:<name>'", "^(ip|user|global|header:[!#$%&'*+.^_`|~0-9A-Za-z-]+)$"),
  isValid: (value: unknown) => typeof value === 'string' && keySchemes.some((scheme) => isOf(scheme, value)),
};

function isOf(scheme: (typeof keySchemes)[number], value: string): boolean {
  try {
    return scheme.parse(value, '') !== undefined;
  } catch {
    return false;
  }
}
