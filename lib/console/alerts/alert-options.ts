import { configError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import { checkValue, oneOf, refuseUnknown, wrongOption } from '../../engine/options/check-options.js';
import { number } from '../../engine/options/kinds.js';
import { givenOptions, isObject, orElse } from '../../engine/options/values.js';
import type { Incident, IncidentKind } from '../api.js';
import { duration } from '../../engine/util/figures.js';
import { incidentText } from '../incident-text.js';

/** The beginning or the end of an incident, as passed to `alerts`. */
export interface ConsoleAlert {
  /** `'began'`, or `'ended'` when the incident is over. */
  state: 'began' | 'ended';
  /** Identifies the incident: both of its alerts have the same id. */
  id: string;
  /** The kind of the incident. */
  kind: IncidentKind;
  /** The severity of the incident. */
  severity: 'critical' | 'warning';
  /** The name of the limit, for an incident of one limit. */
  limit?: string;
  /** A sentence that describes the incident. It contains no client. */
  text: string;
  /** When it began, in milliseconds since the epoch on the clock of Redis. */
  since: number;
  /** When the alert was created, in milliseconds since the epoch. */
  at: number;
  /** Link to the incident in the console; absent without `alerts.link`. */
  link?: string;
  /** The `prefix` of the app, to distinguish several apps. */
  prefix: string;
}

/** Creates the alert for an incident that began. */
export function begun(incident: Incident, at: number, prefix: string, link: string | undefined): ConsoleAlert {
  const { id, kind, severity, since } = incident;
  const limit = 'limit' in incident ? incident.limit : undefined;
  return {
    state: 'began',
    id,
    kind,
    severity,
    ...(limit !== undefined && { limit }),
    text: `${limit === undefined ? '' : `${limit} `}${incidentText(incident)}.`,
    since,
    at,
    ...(link !== undefined && { link: limit === undefined ? link : `${link}#/limit/${encodeURIComponent(limit)}` }),
    prefix,
  };
}

/** Creates the alert for the end of an incident. */
export function ended(alert: ConsoleAlert, at: number): ConsoleAlert {
  const what = alert.limit ?? WHAT[alert.kind];
  return { ...alert, state: 'ended', at, text: `Over after ${duration(Math.max(0, at - alert.since))}: ${what}.` };
}

const WHAT: Readonly<Record<IncidentKind, string>> = {
  refused: 'refusals',
  near: 'a counter near its quota',
  adaptive: 'an adaptive limit that was full',
  fallback: 'checks without the store',
  latency: 'slow checks',
  circuit: 'an open circuit',
  lost: 'a lost instance',
};

/** The format of a webhook's body. */
export type AlertFormat = 'json' | 'slack' | 'pagerduty';

/** Reports incidents even if nobody views the console. */
export interface ConsoleAlerts {
  /**
   * The recipient: the `http:` or `https:` URL of a webhook, or a function. One of the instances sends each alert. If it isn't accepted
   * within 5 seconds, it is sent again while the incident lasts.
   */
  to: string | ((alert: ConsoleAlert) => unknown);
  /**
   * The format of the webhook's body: the `ConsoleAlert` itself (`'json'`), a message for Slack, Mattermost and others (`'slack'`), or an
   * event of PagerDuty's Events API v2 (`'pagerduty'`), which also resolves the alert when the incident ends.
   * @default depends on the host of the URL: `'slack'` for `hooks.slack.com`, `'pagerduty'` for `events.pagerduty.com`, otherwise `'json'`
   */
  format?: AlertFormat;
  /** The integration key of PagerDuty; required for `'pagerduty'`. */
  routingKey?: string;
  /**
   * The kinds of incidents to report.
   * @default ['refused', 'fallback', 'adaptive']
   */
  kinds?: readonly IncidentKind[];
  /**
   * The minimum share of rejected decisions for reporting a limit: 0.05 to 1.
   * @default 0.25
   */
  refusedShare?: number;
  /** The URL of the console as users open it, such as `'https://api.example.com/ops/limits'`. Alerts link to the incident there. */
  link?: string;
}

/** The validated alerts. */
export interface ReadAlerts {
  readonly to: string | ((alert: ConsoleAlert) => unknown);
  readonly format: AlertFormat;
  readonly routingKey: string | undefined;
  readonly kinds: readonly IncidentKind[];
  readonly refusedShare: number;
  readonly link: string | undefined;
}

const OPTIONS = ['to', 'format', 'routingKey', 'kinds', 'refusedShare', 'link'] as const;
const KINDS: readonly IncidentKind[] = ['refused', 'near', 'fallback', 'latency', 'circuit', 'adaptive', 'lost'];
const FORMATS: readonly AlertFormat[] = ['json', 'slack', 'pagerduty'];
const USUAL: readonly IncidentKind[] = ['refused', 'fallback', 'adaptive'];
const BY_HOST: Readonly<Record<string, AlertFormat>> = {
  'hooks.slack.com': 'slack',
  'events.pagerduty.com': 'pagerduty',
  'events.eu.pagerduty.com': 'pagerduty',
};

/** Reads the option `alerts`. Throws `RateLimitConfigError`. */
export function readAlerts(written: unknown, at: string): ReadAlerts | undefined {
  if (written === undefined) return undefined;
  checkValue(at, 'alerts', written, { expected: 'an object such as { to: url }', isValid: isObject });
  const location = `${at}.alerts`;
  refuseUnknown(location, written as object, OPTIONS);
  const {
    to,
    format,
    routingKey,
    kinds = USUAL,
    refusedShare = 0.25,
    link,
  } = givenOptions(written as ConsoleAlerts, OPTIONS);
  const check = (option: string, value: unknown, expected: string, isValid: boolean) =>
    checkValue(location, option, value, { expected, isValid: () => isValid });
  const url = typeof to === 'string' ? webUrl(to) : undefined;
  // The URL may contain a secret, which no message should repeat.
  const shown = typeof to === 'string' ? '…' : to;
  const isRecipient = url !== undefined || typeof to === 'function';
  check('to', shown, 'the http: or https: URL of a webhook, or a function of the alert', isRecipient);
  const read = oneOf(location, 'format', orElse(format, (url && BY_HOST[url.hostname]) ?? 'json'), FORMATS);
  const needsKey = read === 'pagerduty' && url !== undefined;
  const isWrong = needsKey ? typeof routingKey !== 'string' || routingKey === '' : routingKey !== undefined;
  if (isWrong) {
    const expected = 'the integration key of PagerDuty, with its format alone';
    if (routingKey === undefined)
      throw configError('SLUICE_MISSING_OPTION', messages.missingOption(location, 'routingKey', expected));
    throw wrongOption(location, 'routingKey', '…', expected, 'SLUICE_INVALID_OPTION');
  }
  const areKinds = Array.isArray(kinds) && kinds.length > 0 && kinds.every((kind) => KINDS.includes(kind));
  check('kinds', kinds, `a list of some of ${KINDS.join(', ')}`, areKinds);
  checkValue(location, 'refusedShare', refusedShare, number('a number from 0.05 to 1', { minimum: 0.05, maximum: 1 }));
  if (link !== undefined) {
    const isLink = typeof link === 'string' && webUrl(link) !== undefined;
    check('link', link, 'the http: or https: URL of the console', isLink);
  }
  return { to, format: read, routingKey, kinds, refusedShare, link: link?.replace(/#.*$/, '') };
}

function webUrl(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url?.protocol === 'http:' || url?.protocol === 'https:' ? url : undefined;
}
