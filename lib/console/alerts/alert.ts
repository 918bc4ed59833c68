import { duration } from '../../engine/util/figures.js';
import type { Incident, IncidentKind } from '../api.js';
import { incidentText } from '../incident-text.js';

/** An incident that began or ended, as `alerts` reports it. */
export interface ConsoleAlert {
  /** Whether it began or is over. */
  state: 'began' | 'ended';
  /** Identifies the incident: the same for its begin and its end. */
  id: string;
  /** What kind of incident it is. */
  kind: IncidentKind;
  /** How bad it is. */
  severity: 'critical' | 'warning';
  /** The name of the limit, if the incident is of one. */
  limit?: string;
  /** What happened, as one sentence. It names no client. */
  text: string;
  /** When it began, in milliseconds since the epoch by the clock of Redis. */
  since: number;
  /** When this was found. */
  at: number;
  /** Where the console shows it, if `alerts.link` is given. */
  link?: string;
  /** The `prefix` of the app: says which app it is. */
  prefix: string;
}

/** The report of an incident that began. */
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

/** The report that it is over. */
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
