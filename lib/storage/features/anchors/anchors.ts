import { type Anchor, type AnchorOption, asksForAnchor, readAnchor } from '../../../engine/algorithms/anchor.js';
import { argumentError, RateLimitArgumentError } from '../../../engine/errors/errors.js';
import type { Feature } from '../feature.js';
import type { Algorithm } from '../../../engine/algorithms/algorithm.js';
import type { AlgorithmOptions } from '../../../engine/algorithms/index.js';
import type { FeaturedLimit, LimitFeature, MetBy } from '../../../engine/limits/limit-feature.js';
import { bare } from '../../../engine/util/objects.js';
import { wrongInput } from '../../../engine/errors/wording.js';
import type { ExecutionContext } from '@nestjs/common';

/**
 * Returns the start of a limit's windows for a request; `null` or `undefined` for the calendar's own windows.
 */
export type AnchorFunction = (
  context: ExecutionContext,
) => Anchor | null | undefined | Promise<Anchor | null | undefined>;

/** Options of algorithms, some of which support an anchor per request. */
export type WithAnchors<Options> = Options extends { anchor: AnchorOption }
  ? Omit<Options, 'anchor'> & {
      /**
       * The start of windows, such as a subscription's own month: a `Date`, an ISO 8601 date such as `'2026-01-31'` (in the `timezone`,
       * unless it contains an offset), milliseconds since the epoch, or a function of the context that returns one of these, or nothing for
       * the calendar's own windows. The nth window begins at the local time of the anchor, n periods later: an anchor on the 31st leads to
       * 28 February, and then to 31 March again. Not with periods below a day; a function not with `prefetch`.
       * @default the start of the calendar's own windows
       */
      anchor: Anchor | AnchorFunction;
    }
  : Options;

/** The messages of limits whose anchor depends on the request. */
const anchorMessages = {
  wrongAnchor: (limit: string, received: unknown) =>
    wrongInput(
      `anchor for limit '${limit}'`,
      "a Date, an ISO 8601 date such as '2026-01-31', milliseconds since the epoch, or null for the calendar's own window, of the years 1900 to 2199",
      received,
    ),
  noAnchor: (limit: string) =>
    `limit '${limit}' has an anchor by request: expected { anchor: date }, or { anchor: null } for the calendar's own window`,
  noAnchorHere: (location: string, limit: string) =>
    `${location}: limit '${limit}' has an anchor by request, which is unknown here. Use a limit with a fixed anchor`,
} as const;

/** The versions of one limit whose windows begin at the anchor of a request. */
function limitAnchors({ name, algorithm, options }: FeaturedLimit): LimitFeature {
  const { timezone = 'UTC' } = options as { readonly timezone?: string };
  /** Milliseconds since the epoch, or `null` for the calendar's own windows. */
  const read = ({ anchor }: MetBy): number | null => {
    if (anchor === null) return null;
    const at = readAnchor(anchor, timezone);
    if (at === undefined) throw new RateLimitArgumentError(anchorMessages.wrongAnchor(name, anchor));
    return at;
  };
  return bare<LimitFeature>({
    name: 'anchors',
    ofOptions: true,
    // Used if the anchor is unknown: reads and refunds keep the stored window.
    variant: algorithm.following as Algorithm,
    versions: {
      idOf: (by) => (by['anchor'] === undefined ? undefined : String(read(by))),
      make(_, by) {
        const anchor = read(by);
        return { options: (written) => withAnchor(written, anchor), metBy: { anchor } };
      },
      notListed: (location) => anchorMessages.noAnchorHere(location, name),
    },
  });
}

/** The options with a fixed anchor, if a function returned one. */
function withAnchor(options: AlgorithmOptions, anchor: number | null): AlgorithmOptions {
  if (!asksForAnchor(options)) return options;
  const { anchor: _, ...rest } = options;
  return anchor === null ? rest : { ...rest, anchor };
}

/** Lets windows begin at an anchor per request, which a function returns. */
export const anchors: Feature = {
  terms: (options) => (asksForAnchor(options) ? {} : undefined),
  ofOptions: (limit) => (asksForAnchor(limit.options) ? limitAnchors(limit) : undefined),
  trait(options) {
    if (!asksForAnchor(options)) return undefined;
    return {
      option: 'anchor',
      calls: 'anchor',
      by: options.anchor,
      metBy(anchor, limit, looks) {
        // If a changed rate has a fixed anchor, callers don't have to pass one.
        if (anchor === undefined && !looks && asksForAnchor(limit.options)) {
          throw argumentError('SLUICE_UNSUPPORTED_CALL', anchorMessages.noAnchor(limit.name));
        }
        return { anchor };
      },
    };
  },
  // A call for a limit below this one can't pass its anchor.
  childless: 'anchor',
};
