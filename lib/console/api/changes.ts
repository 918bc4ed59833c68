import type { LimitMode } from '../../engine/limits/limit-settings.js';
import type { AlgorithmOptions } from '../../engine/algorithms/index.js';
import type { OverrideSource } from '../../app/overrides/override.js';
import type { OverrideInfo } from './lookup.js';

export interface RateInfo {
  limit: string;
  algo: AlgorithmOptions['algo'];
  /** The options of the algorithm that can be changed, such as `rate`, `interval`, `burst`. */
  patchable: string[];
  configured: { rate: string; options: AlgorithmOptions; mode: LimitMode };
  current: { rate: string; options: AlgorithmOptions; source: OverrideSource; override?: OverrideInfo | undefined };
  mode: { mode: LimitMode; source: OverrideSource; override?: OverrideInfo | undefined };
  candidate: CandidateInfo | null;
}

/** A second version of a limit that is also counted. */
export interface CandidateInfo {
  rate: string;
  options: AlgorithmOptions;
  /** Decisions and rejections in the last hour: of the limit and of its candidate. */
  lastHour: { decisions: number; refused: number; candidateAsked: number; candidateRefused: number };
}

/** Response of `GET api/rates?limit=`, for one limit or for all. */
export interface Rates {
  rates: RateInfo[];
  /** The newest change, 0 before the first one; `api/rollback` accepts an earlier version. `null` if it could not be read. */
  version: number | null;
  /** The reason why rates could not be read. The response then has the ones that this instance uses. */
  problem?: string | undefined;
}

/** Response of changes that don't concern a key. */
export interface Changed {
  /** `false` if there was nothing to clear or undo. */
  changed: boolean;
  /** The number of the change for `api/undo`; absent if unknown. */
  version?: number | undefined;
  /** The values before and after, as text; absent if unknown. */
  before?: string | undefined;
  after?: string | undefined;
  warning?: string | undefined;
}

export interface ChangeInfo {
  at: number;
  action: 'rate' | 'mode' | 'list' | 'rollback' | 'block' | 'unblock' | 'reset' | 'refund' | 'penalize';
  /** `null` for all limits. */
  limit: string | null;
  /** The key that was changed: an identity (a hash unless `identities: 'plain'`), a pattern, or a network; `null` for all. */
  key: string | null;
  by?: string | undefined;
  reason?: string | undefined;
  /** The number of a change of rates, modes or lists, for rollbacks; `null` for a change of a key's counter. */
  version: number | null;
  rollbackTo?: number | undefined;
  /** The value before and after, as text. For a change of a counter, `after` has its `duration` or `units`. */
  before?: string | undefined;
  after?: string | undefined;
}

/** The effect of a change on one setting. */
export type Difference = Pick<ChangeInfo, 'action' | 'limit' | 'key' | 'before' | 'after'>;

/** Response of `GET api/rollback?version=`. */
export interface RollbackPreview {
  version: number;
  /** The newest change, for `api/rollback`, which is rejected if there is a newer one by then. */
  newest: number;
  /** The changes of the rollback: each setting once, with its current value as `before`. */
  undone: Difference[];
}

/** Response of `GET api/changes?limit=`, the newest first. */
export interface Changes {
  changes: ChangeInfo[];
  /** Why part of the log could not be read. */
  problem?: string | undefined;
}
