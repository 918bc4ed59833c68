import type { ConsoleAlert, ReadAlerts } from './alert-options.js';

/** How long a webhook or a function may take. */
const TIMEOUT_MS = 5000;

/** Sends an alert. Rejects if it isn't accepted in time, or before the console closes. */
export async function deliver(
  alert: ConsoleAlert,
  { to, format, routingKey }: ReadAlerts,
  closing: AbortSignal,
): Promise<void> {
  closing.throwIfAborted();
  if (typeof to === 'function') {
    // A function that throws synchronously is handled like one that rejects.
    await inTime(async () => to(alert), closing);
    return;
  }
  const response = await fetch(to, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(bodyOf(alert, format, routingKey)),
    signal: AbortSignal.any([AbortSignal.timeout(TIMEOUT_MS), closing]),
    // A redirect would lead to a URL that was not configured.
    redirect: 'error',
  });
  await response.body?.cancel();
  if (!response.ok) throw new Error(`the webhook answered ${response.status}`);
}

/** Rejects if a call takes too long. Leaves no timer behind. */
async function inTime(call: () => Promise<unknown>, closing: AbortSignal): Promise<void> {
  const ends = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it took longer than ${TIMEOUT_MS / 1000} s`)), TIMEOUT_MS).unref();
    closing.addEventListener('abort', () => reject(closing.reason as Error), { signal: ends.signal });
  });
  try {
    await Promise.race([call(), late]);
  } finally {
    clearTimeout(timer);
    ends.abort();
  }
}

function bodyOf(alert: ConsoleAlert, format: ReadAlerts['format'], routingKey: string | undefined): object {
  if (format === 'json') return alert;
  return format === 'slack' ? ofSlack(alert) : ofPagerDuty(alert, routingKey);
}

function ofSlack({ state, severity, text, link }: ConsoleAlert): object {
  const mark = state === 'ended' ? ':white_check_mark:' : severity === 'critical' ? ':rotating_light:' : ':warning:';
  return { text: `${mark} ${escaped(text)}${link === undefined ? '' : ` <${escaped(link)}|Open the console>`}` };
}

/** Names of limits must not become links or mentions. */
function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function ofPagerDuty(
  { state, id, prefix, severity, text, since, kind, limit, link }: ConsoleAlert,
  key?: string,
): object {
  const common = { routing_key: key, dedup_key: `nestjs-sluice ${prefix} ${id}` };
  if (state === 'ended') return { ...common, event_action: 'resolve' };
  return {
    ...common,
    event_action: 'trigger',
    payload: {
      summary: text.slice(0, 1024),
      source: `nestjs-sluice, prefix ${prefix}`,
      severity,
      timestamp: new Date(since).toISOString(),
      class: kind,
      ...(limit !== undefined && { component: limit }),
    },
    ...(link !== undefined && { links: [{ href: link, text: 'The console' }] }),
  };
}
