import { milliseconds, percent, plural, whole } from '../engine/util/figures.js';
import type { Incident } from './api.js';

/** Describes an incident with the figures of the last minute. For an incident of a limit, put the limit's name before it. */
export function incidentText(incident: Incident): string {
  switch (incident.kind) {
    case 'refused': {
      const { allowed, refused } = incident;
      const all = allowed + refused;
      return `refused ${percent(refused, all)} in the last minute: ${whole(refused)} of ${plural(all, 'decision')}`;
    }
    case 'near':
      return `came near its quota ${plural(incident.near, 'time')} in the last minute`;
    case 'adaptive':
      return (
        `is full: ${whole(incident.inFlight)} in flight of the ${whole(incident.admits)} that it admits, ` +
        `in ${plural(incident.instances.length, 'instance')}`
      );
    case 'fallback':
      return `${whole(incident.failed)} of ${plural(incident.checks, 'check')} in the last minute were decided without the store`;
    case 'latency':
      return `One check in a hundred takes ${milliseconds(incident.p99)} or longer; in the hour before it was ${milliseconds(incident.p99Before)}`;
    case 'circuit':
      return `${plural(incident.instances.length, 'instance')} stopped asking the store, which failed again and again`;
    default:
      return `${incident.instance.host}, process ${incident.instance.pid}, does not report any more`;
  }
}
