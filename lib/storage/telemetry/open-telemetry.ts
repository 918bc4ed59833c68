import type { Span } from '@opentelemetry/api';
import { RateLimitConfigError } from '../../engine/errors/errors.js';
import { logger } from '../../engine/errors/logger.js';
import { messages } from '../../engine/errors/messages/general.js';
import { reasonOf } from '../../engine/errors/reasons.js';
import { VERSION } from './version.js';
import { type LookAtAdaptive, Metrics } from './metrics.js';

type Api = typeof import('@opentelemetry/api');

/** The name of the instrumentation scope. */
const SCOPE = 'nestjs-sluice';
/** The error codes of Node and Jest for a package that is not installed. */
const NOT_FOUND = ['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND'];

/** Reports to OpenTelemetry, if the app has set it up. */
export class OpenTelemetry {
  private constructor(
    private readonly api: Api,
    /** The instruments; absent if nothing collects their measurements. */
    readonly metrics: Metrics | undefined,
  ) {}

  /**
   * Loads `@opentelemetry/api` if it is `required` or the app has set up its SDK; otherwise returns `undefined`. If it isn't installed,
   * throws if it is `required`, and returns `undefined` if not.
   *
   * @param isBroken returns true while the circuit to the store is open; `undefined` without a circuit
   * @param look reads the counter of an adaptive limit
   */
  static async load(
    required: boolean,
    isBroken: (() => boolean) | undefined,
    look: LookAtAdaptive,
  ): Promise<OpenTelemetry | undefined> {
    if (!required && !isSetUp()) return undefined;
    const api = await loadApi(required);
    if (api === undefined) return undefined;
    const meter = api.metrics.getMeter(SCOPE, VERSION);
    // Without a provider, every meter is the same no-op meter.
    const metrics = meter === api.createNoopMeter() ? undefined : new Metrics(meter, isBroken, look);
    return new OpenTelemetry(api, metrics);
  }

  /** The active span if it is recording. */
  span(): Span | undefined {
    const { context, trace, ROOT_CONTEXT } = this.api;
    const active = context.active();
    // A shortcut for the usual case without a span, since this runs on every check.
    const span = active === ROOT_CONTEXT ? undefined : trace.getSpan(active);
    return span?.isRecording() === true ? span : undefined;
  }
}

/** The start of the symbols under which the versions of `@opentelemetry/api` keep what the SDK registers. */
const REGISTERED = 'opentelemetry.js.api.';

/** Returns true if the app has set up the SDK of OpenTelemetry. */
function isSetUp(): boolean {
  return Object.getOwnPropertySymbols(globalThis).some(({ description }) => description?.startsWith(REGISTERED));
}

async function loadApi(required: boolean): Promise<Api | undefined> {
  try {
    return await import('@opentelemetry/api');
  } catch (cause) {
    if (required) throw new RateLimitConfigError(messages.noOpenTelemetry(), { cause, code: 'SLUICE_MISSING_PACKAGE' });
    if (!NOT_FOUND.includes(String((cause as NodeJS.ErrnoException).code))) {
      logger.warn(messages.telemetryFailed(reasonOf(cause)));
    }
    return undefined;
  }
}
