import type { AlgorithmOptions } from '../../algorithms/index.js';
import type { LimitMode, OverrideSource } from '../../overrides/override.js';
import type { OverrideInfo } from './lookup.js';

/** A limit's rate and mode. */
export interface RateInfo {
  limit: string;
  algo: AlgorithmOptions['algo'];
  /** The options of the algorithm that can be changed, such as `rate`, `interval`, `burst`. */
  patchable: string[];
  configured: { rate: string; options: AlgorithmOptions; mode: LimitMode };
  current: { rate: string; options: AlgorithmOptions; source: OverrideSource; override?: OverrideInfo };
  mode: { mode: LimitMode; source: OverrideSource; override?: OverrideInfo };
  candidate: CandidateInfo | null;
}

/** A second version of a limit that is counted beside it. */
export interface CandidateInfo {
  rate: string;
  options: AlgorithmOptions;
  /** What the candidate would have refused in the last hour, beside what the limit did. */
  lastHour: { decisions: number; refused: number; candidateAsked: number; candidateRefused: number };
}

/** Answer of `GET api/rates`. */
export interface Rates {
  rates: RateInfo[];
  /** The newest change, 0 before the first one; `api/rollback` takes a version before it. `null` if it could not be read. */
  version: number | null;
  /** Why they could not be read: then these are those that this instance decides by. */
  problem?: string;
}

/** Answer of changes that are not of a key. */
export interface Changed {
  /** Whether something was changed: `false` if there was nothing to clear or undo. */
  changed: boolean;
  warning?: string;
}

/** A line of the log of changes. */
export interface ChangeInfo {
  /** When, in milliseconds since the epoch by the Redis server's clock. */
  at: number;
  /** What was done. */
  action: 'rate' | 'mode' | 'list' | 'rollback' | 'block' | 'unblock' | 'reset' | 'refund' | 'penalize';
  /** `null` for all limits. */
  limit: string | null;
  /** Of whom: an identity (a hash unless `identities: 'plain'`), a pattern, or a network; `null` for all. */
  key: string | null;
  by?: string;
  reason?: string;
  /** The number of a change of rates, modes or lists, to which one can roll back; `null` for one of a key's counter. */
  version: number | null;
  rollbackTo?: number;
  /** What it was before and is after, as text; `duration` or `units` of a change of a counter stand in `after`. */
  before?: string;
  after?: string;
}

/** Answer of `GET api/changes?limit=`, the newest first. */
export interface Changes {
  changes: ChangeInfo[];
  /** Why a part of the log could not be read. */
  problem?: string;
}
