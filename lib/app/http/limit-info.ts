import type { CheckedLimit } from '../../engine/limits/decision.js';
import { type Duration, milliseconds } from '../../engine/options/values.js';
import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';

/** The properties of a limit that a header formatter receives in addition to its decision. */
export interface LimitInfo {
  /** The limit's name. */
  readonly name: string;
  /** The value of `algo`. */
  readonly algo: string;
  /** The maximum number of units that can be allowed at once. */
  readonly quota: number;
  /** The unit: requests, requests that run at once, or bytes of responses. */
  readonly quotaUnit: 'requests' | 'concurrent-requests' | 'content-bytes';
  /** With `'content-bytes'`, the bytes of a unit: `quota` and the decisions are in units. */
  readonly bytesPerUnit?: number;
  /**
   * The time in milliseconds after which `quota` units are always available again: a client that sends no more than that per period of this
   * length is never rejected. For a calendar window, the length of the current window.
   */
  readonly windowMs: number;
  /** True if the limit only reports and never rejects. */
  readonly shadow: boolean;
  /** The number of units per interval or period; absent for algorithms without a rate. */
  readonly rate?: number;
  /** The interval as it is configured, such as `'10s'`; absent for algorithms without one. */
  readonly interval?: Duration;
  /** The interval in milliseconds. */
  readonly intervalMs?: number;
  /** For `token-bucket` and `gcra`: the maximum number of units at once. */
  readonly burst?: number;
}

const cache = new WeakMap<CompiledLimit, { readonly info: LimitInfo; readonly second: number }>();

/** The properties of a limit. Calendar windows differ in length: the calendar is consulted once per second, not for each request. */
export function limitInfo(limit: CompiledLimit, nowMs: number): LimitInfo {
  const second = Math.floor(nowMs / 1000);
  const known = cache.get(limit);
  if (known?.second === second) return known.info;
  const { name, quota, shadow, algorithm } = limit;
  const windowMs = limit.paceMs(nowMs);
  // Returns the same object as long as nothing has changed, so that results derived from it can also be cached.
  const { bytesPerUnit } = limit;
  const quotaUnit = unitOf(algorithm.leases !== undefined, bytesPerUnit);
  const isSame = known?.info.windowMs === windowMs;
  const info: LimitInfo = isSame
    ? known.info
    : {
        name,
        algo: algorithm.name,
        quota,
        quotaUnit,
        windowMs,
        shadow,
        ...ratesOf(limit),
        ...(bytesPerUnit !== undefined && { bytesPerUnit }),
      };
  cache.set(limit, { info, second });
  return info;
}

function unitOf(isHeld: boolean, bytesPerUnit: number | undefined): LimitInfo['quotaUnit'] {
  if (isHeld) return 'concurrent-requests';
  return bytesPerUnit === undefined ? 'requests' : 'content-bytes';
}

/** The options of a limit that determine its rate. */
function ratesOf({
  algorithm,
  options,
  quota,
}: CompiledLimit): Pick<LimitInfo, 'rate' | 'interval' | 'intervalMs' | 'burst'> {
  const { rate, interval } = options as { readonly rate?: number; readonly interval?: Duration };
  const intervalMs = interval === undefined ? undefined : milliseconds(interval);
  return {
    ...(rate !== undefined && { rate }),
    ...(interval !== undefined && { interval }),
    ...(intervalMs !== undefined && { intervalMs }),
    ...(Object.hasOwn(algorithm.options, 'burst') && { burst: quota }),
  };
}

/** The last properties of limits that are checked together. */
interface KnownInfos {
  readonly second: number;
  readonly limits: readonly CompiledLimit[];
  readonly infos: readonly LimitInfo[];
}

/** By the last limit of the list, because lists that share limits, such as those of the module, differ in the last one. */
const knownInfos = new WeakMap<CompiledLimit, KnownInfos>();

/** The properties of limits that are checked together: the same array as long as nothing has changed. */
export function limitInfos(checked: readonly CheckedLimit[], nowMs: number): readonly LimitInfo[] {
  const last = checked.at(-1);
  if (last === undefined) return [];
  const second = Math.floor(nowMs / 1000);
  const known = knownInfos.get(last.limit);
  const isKnown = known !== undefined && isOf(known, checked);
  if (isKnown && known.second === second) return known.infos;
  const limits = isKnown ? known.limits : checked.map(({ limit }) => limit);
  const made = limits.map((limit) => limitInfo(limit, nowMs));
  const infos = isKnown && made.every((info, index) => info === known.infos[index]) ? known.infos : made;
  knownInfos.set(last.limit, { second, limits, infos });
  return infos;
}

function isOf({ limits }: KnownInfos, checked: readonly CheckedLimit[]): boolean {
  if (limits.length !== checked.length) return false;
  for (let index = 0; index < limits.length; index++) if (limits[index] !== checked[index]!.limit) return false;
  return true;
}
