import { listOf, show } from '../../engine/errors/wording.js';
import type { BoundKey } from '../../app/key-resolvers/key-resolver.factory.js';
import type { MissingKeyOutcome } from '../../app/rules/resolve/identity.js';

type LackedKey = Pick<BoundKey, 'noun' | 'needsUser'>;

/** The reasons in explanations of limits that are not simply checked. */
export const reasons = {
  countsPerRoute: () => 'each route has a counter of its own, and the question names no route',
  keyNotGiven: (noun: string) => `no ${noun} is given`,
  tenantNotGiven: (noun: string) => `no ${noun} is given, which names the tenant`,
  keysAboveNotGiven: ({ ancestors }: { readonly ancestors: readonly { readonly name: string }[] }) =>
    `no key is given for ${listOf(
      ancestors.map(({ name }) => `'${name}'`),
      'and',
    )}, which it is within`,
  isFunction: (option: string) => `its '${option}' is a function, whose result depends on the request`,
  costsWhatIsWithin: () => 'its cost is that of the limit within it, which depends on the request',
  functionFailed: (option: string, error: unknown) =>
    `the function '${option}' failed: ${error instanceof Error ? error.message : show(error)}`,
  skips: () => "its 'skip' leaves the request out",
  lacksKey(outcome: MissingKeyOutcome, { noun, needsUser }: LackedKey, transport: unknown): string {
    const unread = `no reader reads the transport ${show(transport)}, so no ${noun} is known, and`;
    if (outcome === 'skip unread') return `${unread} the limit does not apply`;
    if (outcome === 'refuse unread') return `${unread} the call is answered with 500`;
    if (outcome === 'refuse') return `the request has no ${noun}, and is answered with ${needsUser ? 401 : 400}`;
    return `the request has no ${noun}, so the limit does not apply`;
  },
  countsAddress: (noun: string) => `no ${noun}, so the address counts`,
  functionUnasked: () => 'it gives limits by the request',
  sourceFailed: (error: unknown) => `it failed: ${error instanceof Error ? error.message : show(error)}`,
  isOff: () => "its mode is 'off', so it is not checked",
  checkedEarlier: () => 'a middleware has checked it, before the route was known',
  checkedBefore: () => 'the guard charges it before it calls the function, and then refunds it',
  dependsOnFunctions: () => 'functions give further limits by the request',
} as const;
