import type { ExecutionContext } from '@nestjs/common';
import type { Anchor, AnchorOption } from '../../../engine/algorithms/anchor.js';

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
