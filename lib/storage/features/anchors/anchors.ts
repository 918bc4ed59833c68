import { type Anchor, type AnchorOption, asksForAnchor, readAnchor } from '../../../engine/algorithms/anchor.js';
import { RateLimitArgumentError } from '../../../engine/errors/errors.js';
import type { Feature } from '../feature.js';
import type { Algorithm } from '../../../engine/algorithms/algorithm.js';
import type { AlgorithmOptions } from '../../../engine/algorithms/index.js';
import type { FeaturedLimit, LimitFeature, MetBy, Versions } from '../../../engine/limits/limit-feature.js';
import { Bare } from '../../../engine/util/objects.js';
import { wrongInput } from '../../../engine/errors/wording.js';
import type { ExecutionContext } from '@nestjs/common';

/**
 * Returns the date at which the windows of a limit begin, by the request; `null` or `undefined` for the calendar's own windows.
 */
export type AnchorFunction = (
  context: ExecutionContext,
) => Anchor | null | undefined | Promise<Anchor | null | undefined>;

/** Options of algorithms, of which some may have an anchor that depends on the request. */
export type WithAnchors<Options> = Options extends { anchor: AnchorOption }
  ? Omit<Options, 'anchor'> & {
      /**
       * Where windows begin, such as a subscription's own month: a `Date`, an ISO 8601 date such as `'2026-01-31'` (of the
       * `timezone`, unless it names an offset), milliseconds since the epoch, or a function of the context that returns one of
       * these, or nothing for the calendar's own windows. The nth window begins at the local time of the anchor, n periods later:
       * an anchor on the 31st gives 28 February, and then 31 March again. Not with periods below a day; a function not with
       * `prefetch`.
       * @default where the calendar's own windows begin
       */
      anchor: Anchor | AnchorFunction;
    }
  : Options;

/** The messages of limits whose windows begin at an anchor that each request brings. */
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

/** The versions of one limit whose windows begin where the request says. */
class LimitAnchors extends Bare implements LimitFeature {
  readonly name = 'anchors';
  readonly ofOptions = true;
  /** Counts where no anchor is known: what only looks, or gives back, stays with the stored window. */
  readonly variant: Algorithm;
  readonly versions: Versions;

  constructor({ name, algorithm, options }: FeaturedLimit) {
    super();
    this.variant = algorithm.following as Algorithm;
    const { timezone = 'UTC' } = options as { readonly timezone?: string };
    /** Milliseconds since the epoch, or `null` for the calendar's own windows. */
    const read = ({ anchor }: MetBy): number | null => {
      if (anchor === null) return null;
      const at = readAnchor(anchor, timezone);
      if (at === undefined) throw new RateLimitArgumentError(anchorMessages.wrongAnchor(name, anchor));
      return at;
    };
    this.versions = {
      idOf: (by) => (by['anchor'] === undefined ? undefined : String(read(by))),
      make(_, by) {
        const anchor = read(by);
        return { options: (written) => withAnchor(written, anchor), metBy: { anchor } };
      },
      notListed: (location) => anchorMessages.noAnchorHere(location, name),
    };
  }
}

/** Options with a fixed anchor, if a function gave it. */
function withAnchor(options: AlgorithmOptions, anchor: number | null): AlgorithmOptions {
  if (!asksForAnchor(options)) return options;
  const { anchor: _, ...rest } = options;
  return anchor === null ? rest : { ...rest, anchor };
}

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
          throw new RateLimitArgumentError(anchorMessages.noAnchor(limit.name), { code: 'SLUICE_UNSUPPORTED_CALL' });
        }
        return { anchor };
      },
    };
  },
  // A call for a limit within it does not say where its windows begin.
  childless: 'anchor',
};
