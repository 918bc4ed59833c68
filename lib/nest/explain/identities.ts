import { configError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import { BUILT_IN } from '../../app/key-resolvers/global.js';
import { ipIdentity } from '../../app/key-resolvers/ip.js';
import { refuseImpossibleKey } from '../../app/rules/possible-keys.js';
import type { Rule } from '../../app/rules/rule.js';
import { LOCATION, type RouteQuery } from './question.js';
import { reasons } from './reasons.js';

const ADDRESS = 'ip:';

/** The identity that a limit would count. */
export interface FoundIdentity {
  readonly identity: string;
  readonly note?: string;
}

/** The identities of a hypothetical request. */
export class Identities {
  private readonly list: readonly string[];
  private readonly byName: Readonly<Record<string, string>>;

  constructor(
    key: RouteQuery['key'],
    private readonly ipv6Prefix: number,
  ) {
    const isByName = typeof key === 'object' && !Array.isArray(key);
    this.byName = isByName ? (key as Readonly<Record<string, string>>) : {};
    this.list = typeof key === 'string' ? [key] : Array.isArray(key) ? (key as readonly string[]) : [];
  }

  /** The client's address, if one of the identities is an address. */
  get address(): string | undefined {
    return [...this.list, ...Object.values(this.byName)].find(isAddress)?.slice(ADDRESS.length);
  }

  /** Throws for identities of limits that do not apply. */
  refuseOthers(names: readonly string[]): void {
    for (const name of Object.keys(this.byName)) {
      if (!names.includes(name))
        throw configError('SLUICE_UNKNOWN_OPTION', messages.unknownOption(LOCATION, `key.${name}`, names));
    }
  }

  /** Throws for identities that no request can have, because no `key` produces them. */
  refuseImpossible(rules: readonly Rule[]): void {
    for (const text of this.list) {
      if (rules.length > 0 && !isAddress(text)) refuseImpossibleKey(rules, text, LOCATION);
    }
    for (const rule of rules) {
      const text = Object.hasOwn(this.byName, rule.name) ? this.byName[rule.name]! : undefined;
      if (text === undefined || text.startsWith('header:') || rule.settings.key.given === 'global') continue;
      refuseImpossibleKey([rule], this.normal(text), LOCATION, `key.${rule.name}`);
    }
  }

  /** The identity that a limit would count, if known. */
  of({ name, settings: { key, onMissingKey } }: Rule): FoundIdentity | undefined {
    const { given } = key;
    if (given === 'global') return { identity: given };
    if (Object.hasOwn(this.byName, name)) return { identity: this.byName[name]! };
    const own = this.own(given);
    if (own !== undefined) return { identity: this.normal(own) };
    const address = onMissingKey === 'ip' ? this.list.find(isAddress) : undefined;
    if (address === undefined) return undefined;
    return { identity: this.normal(address), note: reasons.countsAddress(key.noun) };
  }

  private own(given: unknown): string | undefined {
    // A function may return any identity.
    if (typeof given !== 'string') return this.list.find((each) => !BUILT_IN.test(each)) ?? this.list[0];
    const beginning = given.startsWith('header:') ? `${given.toLowerCase()}:` : `${given}:`;
    return this.list.find((each) => each.startsWith(beginning));
  }

  /** Replaces an address with its network, as for a real request. */
  private normal(identity: string): string {
    return isAddress(identity) ? (ipIdentity(identity.slice(ADDRESS.length), this.ipv6Prefix) ?? identity) : identity;
  }
}

function isAddress(identity: string): boolean {
  return identity.startsWith(ADDRESS);
}
