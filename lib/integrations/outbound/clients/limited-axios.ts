import { isRecord } from '../../../app/config/module-option-checks.js';
import { RateLimitConfigError } from '../../../engine/errors/errors.js';
import { outboundMessages } from '../../../engine/errors/messages/outbound.js';
import type { OutboundCall } from '../outbound-call.js';
import type { OutboundCaller } from '../outbound-caller.js';
import type { Permit } from '../permit.js';
import type { AxiosAnswer, AxiosInstanceLike, AxiosRequest, LimitedAxios } from './axios-types.js';
import { isJson, isStream, jsonOf } from './bodies.js';
import { watched } from './held-response.js';
import { namedHeaders } from './named-headers.js';
import {
  asSentWith,
  type AxiosRedirects,
  failedWith,
  mostRedirects,
  redirectedConfig,
  redirectFailed,
  tooManyRedirects,
  withoutRedirects,
} from './axios-redirects.js';
import { rethrow } from '../../../engine/errors/reasons.js';

type Config = AxiosRequest & { readonly signal?: AbortSignal | undefined } & AxiosRedirects;
type Adapter = (config: Config) => Promise<AxiosAnswer>;
type Caller = OutboundCaller<AxiosRequest, AxiosAnswer>;

/** The adapters created here. They follow redirects, unless the request disables that. */
const ours = new WeakSet<Adapter>();

/** The outcome of sending a request once: axios rejects for statuses that the caller does not accept. */
interface Outcome {
  readonly response: AxiosAnswer;
  readonly error: unknown;
  readonly isError: boolean;
}

/** Makes the requests of axios instances wait for their turn. It replaces the adapter, which gets each request in its final form. */
export function limitedAxios(caller: Caller): LimitedAxios {
  return {
    attach: (instance) => {
      if (!isInstance(instance)) throw new RateLimitConfigError(outboundMessages.noAxios(instance));
      const { defaults } = instance;
      const before = defaults.adapter;
      let isAttached = true;
      const adapter: Adapter = async (config) => {
        const send = await adapterOf(before, config);
        if (!isAttached) return send(config);
        // An adapter of the app handles redirects itself.
        const follows = typeof before !== 'function' || ours.has(before as Adapter);
        return follows ? sendFollowing(caller, send, config) : handOn(await sendLimited(caller, send, config), caller);
      };
      ours.add(adapter);
      defaults.adapter = adapter;
      return () => {
        isAttached = false;
        if (defaults.adapter === adapter) defaults.adapter = before;
      };
    },
  };
}

/** Sends a request, and follows redirects. Each of these requests is limited separately. */
async function sendFollowing(caller: Caller, send: Adapter, given: Config): Promise<AxiosAnswer> {
  const most = mostRedirects(given);
  if (most === 0) return handOn(await sendLimited(caller, send, given), caller);
  const since = performance.now();
  let config = withoutRedirects(given);
  for (let redirects = 0; ; redirects++) {
    const sent = await sendLimited(caller, send, config, since).catch((error: unknown) => {
      throw failedWith(given, error);
    });
    const { response, error } = sent.outcome;
    const next = await redirectedConfig(config, response).catch(async (reason: unknown) => {
      discard(response.data);
      await sent.permit.release();
      throw await redirectFailed(given, response, reason);
    });
    if (next === undefined) {
      asSentWith(given, response, error);
      return handOn(sent, caller);
    }
    discard(response.data);
    await sent.permit.release();
    if (redirects === most) throw await tooManyRedirects(given, response);
    config = next;
  }
}

/** The final outcome of a request, and its permit. */
interface Sent {
  readonly outcome: Outcome;
  readonly permit: Permit;
}

async function sendLimited(caller: Caller, send: Adapter, config: Config, since?: number): Promise<Sent> {
  const call = await caller.call(() => config, config.signal, since);
  const sent = {
    method: config.method ?? 'GET',
    hasKey: namedHeaders(config.headers).get('idempotency-key') !== null,
    canRepeat: !isStream(config.data),
  };
  let permit = await call.enter();
  for (;;) {
    const outcome = await sendOnce(call, send, config);
    const { status, headers, data } = outcome.response;
    const named = namedHeaders(headers);
    const body = caller.settings.readsBody && isJson(named) ? jsonOf(data) : undefined;
    const report = call.answered({ status, headers: named, body, receivedAt: Date.now() });
    const waitMs = call.waitMs(sent, report, status);
    const again = waitMs === undefined ? undefined : await reenter(call, waitMs, data);
    if (again === undefined) return { outcome, permit };
    permit = again;
    discard(data);
  }
}

/** Waits for the next attempt. If the wait is aborted, the rejection is discarded. */
async function reenter(call: OutboundCall, waitMs: number, data: unknown): Promise<Permit | undefined> {
  try {
    return await call.reenter(waitMs);
  } catch (error) {
    discard(data);
    throw error;
  }
}

/** Destroys an unread streamed body. */
function discard(data: unknown): void {
  if (data instanceof ReadableStream) data.cancel().catch(() => undefined);
  else if (isStream(data)) (data as { destroy?: () => void }).destroy?.();
}

async function sendOnce(call: OutboundCall, send: Adapter, config: Config): Promise<Outcome> {
  try {
    return { response: await send(config), error: undefined, isError: false };
  } catch (error) {
    const response = (error as { response?: AxiosAnswer } | undefined)?.response;
    if (response !== undefined) return { response, error, isError: true };
    call.failed();
    throw error;
  }
}

function handOn({ outcome: { response, error, isError }, permit }: Sent, caller: Caller): AxiosAnswer {
  // Axios reads the body once it has the response.
  if (caller.settings.settle !== undefined) setImmediate(() => void caller.settle(permit, () => response));
  const { data } = response;
  if (permit.holds && data instanceof ReadableStream) {
    Object.assign(response, { data: watched(data, () => void permit.release()) });
  } else if (permit.holds && isStream(data)) {
    (data as NodeJS.ReadableStream).once('close', () => void permit.release());
  } else void permit.release();
  if (isError) throw error;
  return response;
}

/** The adapter that an instance had before: a function, or names of adapters built into axios. */
async function adapterOf(adapter: unknown, config: Config): Promise<Adapter> {
  if (typeof adapter === 'function') return adapter as Adapter;
  const { default: axios } = await import('axios').catch(rethrow);
  return axios.getAdapter(adapter as 'http', config as never) as Adapter;
}

function isInstance(instance: unknown): instance is AxiosInstanceLike {
  const isObject = typeof instance === 'function' || isRecord(instance);
  return isObject && isRecord((instance as Partial<AxiosInstanceLike>).defaults);
}
