import { asksForAnchor } from '../../../engine/algorithms/anchor.js';
import { RateLimitArgumentError } from '../../../engine/errors/errors.js';
import type { Feature } from '../feature.js';
import { LimitAnchors } from './limit-anchors.js';
import { anchorMessages } from './messages.js';

/** Lets windows begin where the request says: a function of it is the `anchor`. */
export const anchors: Feature = {
  terms: (options) => (asksForAnchor(options) ? {} : undefined),
  ofOptions: (limit) => (asksForAnchor(limit.options) ? new LimitAnchors(limit) : undefined),
  trait(options) {
    if (!asksForAnchor(options)) return undefined;
    return {
      option: 'anchor',
      calls: 'anchor',
      by: options.anchor,
      metBy(anchor, limit, looks) {
        // If a changed rate has a fixed anchor, callers need not know that.
        if (anchor === undefined && !looks && asksForAnchor(limit.options)) {
          throw new RateLimitArgumentError(anchorMessages.noAnchor(limit.name));
        }
        return { anchor };
      },
    };
  },
  // A call for a limit within it does not say where its windows begin.
  childless: 'anchor',
};
