import { listMessages } from '../../../engine/errors/messages/rates.js';
import { isOverrideKey, prefixOf } from '../override-address.js';
import { identityKey, networkKey } from './listed.js';
import { readNetwork } from './network.js';

/** The ways in which an entry can identify clients. */
export const FORMS = ['ip', 'identity', 'pattern'] as const;

/** One of these. */
export type ListForm = (typeof FORMS)[number];

export function isListForm(name: unknown): name is ListForm {
  return FORMS.includes(name as ListForm);
}

/** Turns the client of an entry into the address of its record, or returns the expected form. */
export function readForm(form: ListForm, value: unknown): { readonly key: string } | { readonly expected: string } {
  if (form === 'ip') {
    const network = readNetwork(value);
    return typeof network === 'string' ? { expected: network } : { key: networkKey(network.text) };
  }
  if (form === 'pattern') {
    const isPattern = isOverrideKey(value) && prefixOf(value) !== undefined;
    return isPattern ? { key: identityKey(value) } : { expected: listMessages.listedPatternExpected() };
  }
  const isIdentity = isOverrideKey(value) && prefixOf(value) === undefined;
  return isIdentity ? { key: identityKey(value) } : { expected: listMessages.listedIdentityExpected() };
}
