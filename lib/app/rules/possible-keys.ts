import { isIP } from 'node:net';
import { argumentError, configError } from '../../engine/errors/errors.js';
import { keyMessages } from '../../engine/errors/messages/calls.js';
import { addressForm, formOf } from '../key-resolvers/index.js';
import type { Rule } from './rule.js';
import { wrongOption } from '../../engine/options/check-options.js';

/**
 * Returns the expected form of the limit's keys if a key that an operator has written down can't be one of them. `undefined` if the key is
 * possible. Any text is possible if a function or class returns the keys, or if the limit sets no key and code may pass any.
 */
export function keyProblem(rule: Rule, key: string): string | undefined {
  const { settings } = rule;
  const { given } = settings.key;
  const own = formOf(given);
  if (own === undefined) return undefined;
  const address = addressForm(key, settings.ipv6Prefix);
  const ofAddress = address === key || address === undefined ? undefined : keyMessages.identity(address);
  // A limit without its own key counts addresses on routes, and any key that code passes.
  if (settings.hasKey !== true) return rule.countsRequests && given === 'ip' ? ofAddress : undefined;
  if (own.isOne(key, settings.ipv6Prefix)) return undefined;
  if (given === 'ip') return ofAddress ?? own.expected(key);
  // A request without the key is counted under its address.
  const countsAddresses = settings.onMissingKey === 'ip' && given !== 'global';
  return countsAddresses && address !== undefined ? ofAddress : own.expected(key);
}

/** Returns true if keys of a limit may be any text. */
export function takesAnyKey(rule: Rule): boolean {
  const { hasKey, key } = rule.settings;
  return formOf(key.given) === undefined || (hasKey !== true && !rule.countsRequests);
}

/** Returns true if a limit counts requests per address: all of them, or those without its key. */
export function countsAddresses({ settings, countsRequests }: Rule, onRoutes = countsRequests): boolean {
  const { given } = settings.key;
  if (given === 'ip') return settings.hasKey === true || onRoutes;
  return typeof given === 'string' && given !== 'global' && settings.onMissingKey === 'ip';
}

/** The kinds of keys that the limits of an app use. Lists for all limits depend on them. */
export interface KeysInUse {
  /** True if any text may be a key of a limit. */
  readonly takesAny: boolean;
  /** True if a limit has addresses as keys. */
  readonly countsAddresses: boolean;
  readonly ipv6Prefix?: number | undefined;
}

/** Describes why no limit can have a key, or a prefix of keys followed by a star; `undefined` if one can. */
export function identityProblem(identity: string, inUse: KeysInUse): string | undefined {
  const { takesAny, ipv6Prefix } = inUse;
  const refusesAddresses = inUse.countsAddresses || !takesAny;
  if (identity.endsWith('*')) {
    const looksLikeOne = refusesAddresses && BEGINS_ADDRESS.test(identity);
    return looksLikeOne ? keyMessages.listedAddresses(identity, takesAny) : undefined;
  }
  const [, header] = /^(header:[^:]+):/.exec(identity) ?? [];
  const form = formOf(header);
  if (form !== undefined) return form.isOne(identity) ? undefined : form.expected(identity);
  const address = addressForm(identity, ipv6Prefix);
  if (address === identity) return undefined;
  if (address !== undefined && identity.startsWith('ip:')) return keyMessages.identity(address);
  const isOne = address !== undefined || isIP(NETWORK.exec(identity)?.[1] ?? '') !== 0;
  return isOne && refusesAddresses ? keyMessages.listedAddress(identity, takesAny) : undefined;
}

/** A network in CIDR notation. */
const NETWORK = /^(.+)\/\d{1,3}$/;
/** The prefix of IPv4 addresses, followed by a star. */
const BEGINS_ADDRESS = /^\d{1,3}\.(?:\d{1,3}\.){0,2}\d{0,3}\*$/;

/** The same as `keyProblem`, for a key or a prefix of keys followed by a star. */
export function patternOrKeyProblem(rule: Rule, key: string): string | undefined {
  return key.endsWith('*') ? patternProblem(rule, key) : keyProblem(rule, key);
}

function patternProblem(rule: Rule, pattern: string): string | undefined {
  const { hasKey, key, onMissingKey } = rule.settings;
  const own = hasKey ? formOf(key.given) : undefined;
  if (own === undefined) return undefined;
  const text = pattern.slice(0, -1);
  const begins = onMissingKey === 'ip' && key.given !== 'global' ? [own.begins, 'ip:'] : [own.begins];
  const isPossible = own.mayBegin?.(text) ?? begins.some((each) => text.startsWith(each) || each.startsWith(text));
  return isPossible ? undefined : keyMessages.beginning(begins);
}

/** Throws `RateLimitArgumentError` if no counter of the limit can have the key of a call. */
export function assertPossibleKey(rule: Rule, key: string): void {
  const expected = keyProblem(rule, key);
  if (expected === undefined) return;
  const shown = isSecret(rule.settings.key.given) ? undefined : key;
  throw argumentError('SLUICE_INVALID_KEY', keyMessages.impossible(rule.name, shown, expected));
}

/** Throws `RateLimitConfigError` if the limit can't have the key of an option, or a prefix of keys followed by a star. */
export function refuseImpossibleKeys(rule: Rule, key: string, location: string, option = 'key'): void {
  refuse(rule, key, patternOrKeyProblem(rule, key), location, option);
}

/** Throws `RateLimitConfigError` if none of these limits can have the key. */
export function refuseImpossibleKey(rules: readonly Rule[], key: string, location: string, option = 'key'): void {
  const problems = rules.map((rule) => keyProblem(rule, key));
  if (!problems.includes(undefined)) refuse(rules[0]!, key, problems[0], location, option);
}

function refuse(rule: Rule, key: string, expected: string | undefined, location: string, option: string): void {
  if (expected === undefined) return;
  const given = rule.settings.key.given;
  if (isSecret(given)) throw configError('SLUICE_INVALID_KEY', keyMessages.secretOption(location, option, expected));
  throw wrongOption(location, option, key, expected);
}

/** A header's value may be a secret. */
function isSecret(given: unknown): boolean {
  return typeof given === 'string' && given.startsWith('header:');
}
