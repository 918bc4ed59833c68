import { resetAfterMs, textOf, units } from './field-values.js';
import { dictionaryOf, type Item, itemsOf, type Value } from './structured-fields.js';
import type { UpstreamLimit, UpstreamResponse } from './upstream-report.js';

/** A limit in `RateLimit-Policy`. */
interface Policy {
  readonly name: string;
  readonly unit: string | undefined;
  readonly quota: number | undefined;
  readonly windowMs: number | undefined;
}

/**
 * Reads `RateLimit` and `RateLimit-Policy` in every form of drafts 3 to 11 of `draft-ietf-httpapi-ratelimit-headers`, and with the names
 * that are proposed for draft 12.
 */
export function rateLimitFields(response: UpstreamResponse): UpstreamLimit[] {
  const policies = policiesOf(textOf(response.headers, 'ratelimit-policy'));
  const state = textOf(response.headers, 'ratelimit');
  if (state === undefined) return separateFields(response, policies);
  const named = itemsOf(state).map((item) => namedLimit(item, policies));
  return named.some(({ remaining }) => remaining !== undefined) ? named : dictionary(state, policies);
}

/** Drafts 8 to 11: `"default";r=50;t=30`, along with `"default";q=100;w=60`. Proposed for draft 12: `"default";a=50;w=30`. */
function namedLimit({ value, parameters }: Item, policies: readonly Policy[]): UpstreamLimit {
  const name = nameOf(value);
  const policy = policies.find((each) => each.name === name);
  const left = seconds(parameters.get('t') ?? parameters.get('w'));
  return {
    name,
    unit: policy?.unit,
    quota: policy?.quota,
    remaining: count(parameters.get('r') ?? parameters.get('a')),
    resetAfterMs: left,
    windowMs: policy?.windowMs,
  };
}

/** Draft 7: `limit=100, remaining=50, reset=30`. */
function dictionary(text: string, policies: readonly Policy[]): UpstreamLimit[] {
  const members = dictionaryOf(text);
  const remaining = count(members.get('remaining'));
  if (remaining === undefined) return [];
  const quota = count(members.get('limit'));
  return [{ name: '', ...ofQuota(quota, policies), quota, remaining, resetAfterMs: seconds(members.get('reset')) }];
}

/** Drafts 3 to 6: three fields; the first may be followed by the policies, as in `100, 100;w=60`. */
function separateFields(response: UpstreamResponse, policies: readonly Policy[]): UpstreamLimit[] {
  const remaining = units(textOf(response.headers, 'ratelimit-remaining'));
  if (remaining === undefined) return [];
  const [first, ...behind] = policiesOf(textOf(response.headers, 'ratelimit-limit'));
  const quota = first?.quota;
  const all = policies.length > 0 ? policies : behind;
  return [
    { name: '', ...ofQuota(quota, all), quota, remaining, resetAfterMs: resetAfterMs(response, 'ratelimit-reset') },
  ];
}

/** The policy that has the quota of the reported limit. */
function ofQuota(quota: number | undefined, policies: readonly Policy[]): Pick<Policy, 'unit' | 'windowMs'> {
  const policy = policies.find((each) => each.quota === quota);
  return { unit: policy?.unit, windowMs: policy?.windowMs };
}

/** In drafts 8 to 11 `"default";q=100;w=60;qu="requests"`, in earlier ones `100;w=60`. */
function policiesOf(text: string | undefined): Policy[] {
  if (text === undefined) return [];
  return itemsOf(text).map(({ value, parameters }) => {
    const unit = parameters.get('qu');
    const isQuota = typeof value === 'number';
    return {
      name: isQuota ? '' : nameOf(value),
      unit: typeof unit === 'string' && unit !== '' ? unit : undefined,
      quota: isQuota ? count(value) : count(parameters.get('q')),
      windowMs: seconds(parameters.get('w')),
    };
  });
}

function nameOf(value: Value): string {
  if (typeof value === 'object') return value.token;
  return typeof value === 'string' ? value : '';
}

function count(value: Value): number | undefined {
  return typeof value === 'number' && value >= 0 ? Math.floor(value) : undefined;
}

function seconds(value: Value): number | undefined {
  return typeof value === 'number' && value >= 0 ? value * 1000 : undefined;
}

/** The prefixes that different upstreams give these fields. */
const PREFIXES = ['x-ratelimit', 'x-rate-limit'];

/** Reads `X-RateLimit-Limit`, `-Remaining` and `-Reset`, the spelling `X-Rate-Limit`, and the more precise `-Reset-After`. */
export function xRateLimitFields(response: UpstreamResponse, name = ''): UpstreamLimit[] {
  for (const prefix of PREFIXES) {
    const remaining = units(textOf(response.headers, `${prefix}-remaining`));
    if (remaining === undefined) continue;
    return [
      {
        name,
        quota: units(textOf(response.headers, `${prefix}-limit`)),
        remaining,
        resetAfterMs: resetAfterMs(response, `${prefix}-reset-after`) ?? resetAfterMs(response, `${prefix}-reset`),
      },
    ];
  }
  return [];
}
