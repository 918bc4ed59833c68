// Operations of a program, as described in `lua/header.lua`; `lua/driver/program.lua` has the same numbers.

export const CONSUME = 0;
export const PEEK = 1;
export const REFUND = 2;
export const HISTORY = 3;
export const RESERVE = 4;
export const PENALIZE = 5;
export const BLOCK = 6;
export const RENEW = 7;
export const CONSUME_REFUNDABLE = 8;
export const CONSUME_EACH = 9;
export const BLOCKED_FOR = 10;
export const LEARN = 11;
export const LEARN_RATE = 12;
export const CLAIM = 13;
export const RELEASE = 14;
export const SETTLE = 15;
export const HOLD = 16;
/** Before a check: the feature that decides which of its entries fit, and the values that it needs for that. */
export const TOGETHER = 17;
export const CREDIT = 18;
/** Before a check, and followed by a 0: the check takes as many units as fit. */
export const UP_TO = 19;
/** A check of a call that waits: a rejection neither begins nor extends a block, and isn't counted. */
export const CONSUME_WAITING = 20;
/** An operation of a feature, followed by the number of its arguments. */
export const OF_FEATURE = 21;
