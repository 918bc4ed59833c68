import type { ListName } from '../../app/config/list-entry.js';
import type { LimitMode } from '../../engine/limits/limit-mode.js';

/** Body of `POST api/lookup`. */
export interface LookupBody {
  identity: string;
}

/** The members that all bodies of changes have. */
export interface ReasonedBody {
  /** 1 to 200 characters on one line. */
  reason: string;
}

/** Body of `POST api/keys/unblock` and `api/keys/reset`, and of `api/keys/clear-override`. */
export interface KeyBody extends ReasonedBody {
  limit: string;
  /** The key; or else its `id`. */
  identity?: string;
  /** The hash of a key that was counted lately, as top keys show it. */
  id?: string;
}

/** Body of `POST api/keys/block`. */
export interface BlockBody extends KeyBody {
  /** A duration such as `15m`, or milliseconds. */
  duration: string | number;
}

/** Body of `POST api/keys/refund` and `api/keys/penalize`. */
export interface UnitsBody extends KeyBody {
  /** A whole number >= 1. */
  units: number;
}

/** Body of `POST api/keys/override`. */
export interface OverrideBody extends KeyBody {
  patch: Record<string, unknown>;
  expiresIn?: string | number;
}

/**
 * Body of `POST api/lists` (with `expiresIn`) and `api/lists/remove`: either `identity` (a pattern if it ends in `*`) or `ip`.
 */
export interface ListBody extends ReasonedBody {
  list: ListName;
  identity?: string;
  ip?: string;
  limit?: string;
  expiresIn?: string | number;
}

/** Body of `POST api/lists/remove`: the `id` of an entry, or who it names. */
export interface UnlistBody extends ReasonedBody {
  id?: string;
  identity?: string;
  ip?: string;
  limit?: string;
}

/** Body of `POST api/rates/clear`, `api/modes/clear`, `api/candidates/enforce` and `api/candidates/clear`. */
export interface LimitBody extends ReasonedBody {
  limit: string;
}

/** Body of `POST api/rates/set` and, without `expiresIn`, of `api/candidates/set`. */
export interface RateBody extends LimitBody {
  patch: Record<string, unknown>;
  expiresIn?: string | number;
}

/** Body of `POST api/modes/set`. */
export interface ModeBody extends LimitBody {
  mode: LimitMode;
  expiresIn?: string | number;
}

/** Body of `POST api/rollback`. */
export interface RollbackBody extends ReasonedBody {
  /** The version to return to: later changes are undone. */
  version: number;
  /** The newest version for which the user knows what is undone; a newer one refuses the request. */
  newest?: number;
}

/** Body of `POST api/undo`. */
export interface UndoBody extends ReasonedBody {
  /** The change to undo, alone. */
  version: number;
}
