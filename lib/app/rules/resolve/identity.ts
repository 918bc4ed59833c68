import {
  BadRequestException,
  type ExecutionContext,
  InternalServerErrorException,
  UnauthorizedException,
} from '@nestjs/common';
import type { OnMissingKey } from '../../config/common-limit-options.js';
import { RateLimitArgumentError, RateLimitConfigError } from '../../../engine/errors/errors.js';
import { messages } from '../../../engine/errors/messages/general.js';
import type { BoundKey } from '../../key-resolvers/key-resolver.factory.js';
import type { ResolvedKey } from '../../../engine/limits/identity.js';
import type { RequestParts } from '../../transports/request-reader.js';
import { isUnread } from '../../transports/unread.reader.js';
import type { Rule } from '../rule.js';
import { warnOfMissingKey, warnOfUserWithoutId } from './missing-key-warning.js';

/**
 * The outcome for a request without a key: it counts under its address, the limit does not apply, or the request is rejected. The last two
 * are also possible if no reader supports the call, so that its key is unknown.
 */
export type MissingKeyOutcome = OnMissingKey | 'skip unread' | 'refuse unread';

/** The identity of a resolved key; `undefined` if it is missing. Throws `RateLimitArgumentError` if it is invalid. */
export function identityOfKey(rule: Rule, key: ResolvedKey): string | undefined {
  if (typeof key === 'string' && key !== '') return key;
  if (key === undefined || key === null || key === '') return undefined;
  if (Number.isFinite(key) || typeof key === 'bigint') return String(key);
  throw new RateLimitArgumentError(messages.wrongResolvedKey(rule.name, key), { code: 'SLUICE_INVALID_RESULT' });
}

/** The outcome for a request without a key of a limit: the limit's own key, or that of its tenants. */
export function missingKeyOutcome({ settings, limit }: Rule, by: BoundKey, parts: RequestParts): MissingKeyOutcome {
  const { onMissingKey, onMissingReader } = settings;
  // A shadow limit never rejects a request.
  const refuses = onMissingKey === 'refuse' && !limit.shadow;
  // A key function has run and found nothing, so its key is known to be missing. Without a reader, though, the address is unknown.
  const isKnownMissing = !isUnread(parts) || refuses || (onMissingKey !== 'ip' && typeof by.given === 'function');
  if (!isKnownMissing) return limit.shadow || onMissingReader === 'skip' ? 'skip unread' : 'refuse unread';
  return onMissingKey === 'refuse' && !refuses ? 'skip' : onMissingKey;
}

/**
 * The identity of a request without a key; `undefined` if the limit does not apply. Throws if the request is rejected.
 * @param phase the phase of the check, which other levels of the hierarchy may postpone
 */
export function identityWithoutKey(
  rule: Rule,
  by: BoundKey,
  context: ExecutionContext,
  parts: RequestParts,
  phase = rule.settings.phase,
): string | undefined {
  const { byAddress, log } = rule.settings;
  const outcome = missingKeyOutcome(rule, by, parts);
  if (by.needsUser) warnOfUserWithoutId(rule, context, parts);
  switch (outcome) {
    case 'refuse':
      if (by.needsUser) throw new UnauthorizedException(messages.noUser());
      throw new BadRequestException(messages.noKey(by.noun));
    case 'refuse unread': {
      const text = messages.noReader(rule.name, context.getType<string>());
      log.error(text);
      throw new InternalServerErrorException(messages.uncheckable(), {
        cause: new RateLimitConfigError(text, { code: 'SLUICE_NO_READER' }),
      });
    }
    case 'skip unread':
      log.warn(messages.skipsUnread(rule.name, context.getType<string>()));
  }
  if (outcome !== 'ip') return undefined;
  const identity = byAddress(context, parts);
  if (identity === undefined) log.warn(messages.noAddress(rule.name));
  else warnOfMissingKey(rule, by, context, parts, phase);
  return identity;
}
