import { refuseUnknown } from '../../engine/options/check-options.js';
import { givenOptions, orElse } from '../../engine/options/values.js';
import { RateLimitConfigError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
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

const OPTIONS = [
  'to',
  'format',
  'routingKey',
  'kinds',
  'refusedShare',
  'link',
] as const satisfies (keyof ConsoleAlerts)[];
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
  const location = `${at}.alerts`;
  if (typeof written !== 'object' || written === null || Array.isArray(written)) {
    throw new RateLimitConfigError(messages.wrongOption(at, 'alerts', written, 'an object such as { to: url }'));
  }
  refuseUnknown(location, written, OPTIONS);
  const { to, format, routingKey, kinds, refusedShare, link } = givenOptions(
    written as Readonly<Record<string, unknown>>,
    OPTIONS,
  );
  const wrong = (option: string, got: unknown, expected: string) =>
    new RateLimitConfigError(
      got === undefined
        ? messages.missingOption(location, option, expected)
        : messages.wrongOption(location, option, got, expected),
    );
  const url = typeof to === 'string' ? webUrl(to) : undefined;
  // The URL may contain a secret, which no message should repeat.
  const shown = typeof to === 'string' ? '…' : to;
  if (url === undefined && typeof to !== 'function') {
    throw wrong('to', shown, 'the http: or https: URL of a webhook, or a function of the alert');
  }
  const read = orElse(format, (url && BY_HOST[url.hostname]) ?? 'json') as AlertFormat;
  if (!FORMATS.includes(read)) throw wrong('format', format, `one of ${FORMATS.join(', ')}`);
  const needsKey = read === 'pagerduty' && url !== undefined;
  if (needsKey ? typeof routingKey !== 'string' || routingKey === '' : routingKey !== undefined) {
    const got = routingKey === undefined ? undefined : '…';
    throw wrong('routingKey', got, 'the integration key of PagerDuty, with its format alone');
  }
  if (
    kinds !== undefined &&
    !(Array.isArray(kinds) && kinds.length > 0 && kinds.every((kind) => KINDS.includes(kind)))
  ) {
    throw wrong('kinds', kinds, `a list of some of ${KINDS.join(', ')}`);
  }
  const share = orElse(refusedShare, 0.25);
  if (typeof share !== 'number' || !(share >= 0.05 && share <= 1)) {
    throw wrong('refusedShare', refusedShare, 'a number from 0.05 to 1');
  }
  if (link !== undefined && (typeof link !== 'string' || webUrl(link) === undefined)) {
    throw wrong('link', link, 'the http: or https: URL of the console');
  }
  return {
    to: to as ReadAlerts['to'],
    format: read,
    routingKey: routingKey as string | undefined,
    kinds: (kinds as readonly IncidentKind[] | undefined) ?? USUAL,
    refusedShare: share,
    link: link?.replace(/#.*$/, ''),
  };
}

function webUrl(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url?.protocol === 'http:' || url?.protocol === 'https:' ? url : undefined;
}
