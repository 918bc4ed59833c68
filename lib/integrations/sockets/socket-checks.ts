import { type IncomingMessage, ServerResponse } from 'node:http';
import { HttpException, InternalServerErrorException, type Type, UnauthorizedException } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { RATE_LIMIT_STORE } from '../../app/config/tokens.js';
import { Lease } from '../../app/limiter/lease.js';
import { listedRules } from '../../app/rules/listed-rules.js';
import { LimitRegistry } from '../../app/rules/limit-registry.js';
import type { RuleEntry } from '../../app/rules/resolve/resolve.js';
import { RouteRules, rulesOfPhase, withAncestors } from '../../app/rules/route-rules.js';
import type { Rule } from '../../app/rules/rule.js';
import { type FrameworkAdapter, frameworkAddress, type ReadAddress } from '../../app/transports/framework-address.js';
import type { RequestReader } from '../../app/transports/request-reader.js';
import { wsReader } from '../../app/transports/ws.reader.js';
import { WaitQueues } from '../../app/waiting/wait-queues.js';
import { Attempts, logger, OnceLogger } from '../../engine/errors/logger.js';
import { socketMessages } from '../../engine/errors/messages/sockets.js';
import { andThen, type Awaitable, isPromise } from '../../engine/util/awaitable.js';
import { Answers } from '../../nest/request/answers.js';
import type { StoreCheck } from '../../nest/request/charges.js';
import { DeniedAddresses } from '../../nest/request/denied-addresses.js';
import { LimitedRequest } from '../../nest/request/limited-request.js';
import { type PendingCheck, RequestCheck } from '../../nest/request/request-check.js';
import { RequestLimiter } from '../../nest/request/request-limiter.js';
import { heldOf } from '../../storage/stores/store-decision.js';
import type { Store } from '../../storage/stores/store.js';
import type { SocketSettings } from './socket-options.js';

/** Finds the services that the checks use. */
export function socketServices(find: <T>(token: Type<T> | symbol) => T) {
  return {
    registry: find(LimitRegistry),
    check: find(RequestCheck),
    answers: find(Answers),
    deniedAddresses: find(DeniedAddresses),
    limiter: find(RequestLimiter),
    store: find<Store>(RATE_LIMIT_STORE),
    queues: find(WaitQueues),
    address: addressReader(find(HttpAdapterHost).httpAdapter),
  };
}

/** A handshake request with data that Node's own request doesn't have. */
export interface HandshakeRequest extends IncomingMessage {
  ip?: string | undefined;
  user?: unknown;
}

export interface Admission {
  /** The reason for a rejection; `undefined` if it was admitted. */
  readonly refusal: HttpException | undefined;
  /** Has the headers about its limits. */
  readonly response: ServerResponse;
  /** Releases the units that the connection holds. A second call does nothing. */
  release(): void;
}

/** Handshakes have the arguments of an HTTP request, without a framework's request. */
const handshakeReader: RequestReader = {
  transport: 'http',
  read: (context) => ({
    request: context.switchToHttp().getRequest<HandshakeRequest>(),
    response: context.switchToHttp().getResponse<ServerResponse>(),
  }),
};

/** No limits are declared for a route here. */
const NO_RULES = new RouteRules([], false);

/** Checks the limits of handshakes, connections and frames. No method throws or rejects. */
export class SocketChecks {
  private readonly rules: readonly Rule[];
  private readonly frameRules: readonly Rule[];
  private readonly attempts = new Attempts(logger);

  /** Throws `RateLimitConfigError` for wrong limits. */
  constructor(
    private readonly settings: SocketSettings,
    private readonly services: ReturnType<typeof socketServices>,
  ) {
    this.rules = this.compiled({ handshakes: settings.handshakes, connections: settings.connections });
    this.frameRules = this.compiled({ frames: settings.frames });
  }

  get closeAfter(): number {
    return this.settings.closeAfter;
  }

  get limitsHandshakes(): boolean {
    return this.rules.length > 0;
  }

  get limitsFrames(): boolean {
    return this.frameRules.length > 0;
  }

  /** Sets the address that the framework would read, so that messages of the connection count for it as well. */
  identify(request: HandshakeRequest): void {
    if (request.ip !== undefined) return;
    try {
      request.ip = (this.settings.address ?? this.services.address)(request);
    } catch (error) {
      this.attempts.report(socketMessages.failed('handshake'), error);
    }
    request.ip ??= request.socket.remoteAddress;
  }

  /** Checks the limits of a handshake. All limits that don't need `authenticate` are decided in one check. */
  async admit(request: HandshakeRequest, response = new ServerResponse(request)): Promise<Admission> {
    const leases: Lease[] = [];
    const release = () => {
      for (const lease of leases) lease.release().catch(() => undefined);
    };
    try {
      this.identify(request);
      const { authenticate } = this.settings;
      const first = authenticate === undefined ? this.rules : rulesOfPhase(this.rules, 'guard');
      const limited = this.limited(new ExecutionContextHost([request, response]), handshakeReader);
      if (this.services.deniedAddresses.mayRefuse && this.services.deniedAddresses.refuses(limited)) {
        throw this.services.answers.denied(limited);
      }
      leases.push(...this.held(await this.checked(limited, first)));
      if (authenticate !== undefined) {
        request.user = (await this.authenticated(authenticate, request)) ?? request.user;
        const rest = rulesOfPhase(this.rules, 'authenticated');
        leases.push(...this.held(await this.checked(limited.begin(limited.context), rest)));
      }
      return { refusal: undefined, response, release };
    } catch (error) {
      release();
      return { refusal: this.refusalOf(error, 'handshake'), response, release };
    }
  }

  /** Checks the limits of a frame that counts as `frames` frames. Returns the reason if it is rejected; synchronously where possible. */
  frame(client: object, data: unknown, frames: number): Awaitable<HttpException | undefined> {
    const failed = (error: unknown) => this.refusalOf(error, 'frame');
    try {
      const context = new ExecutionContextHost([client, data]);
      context.setType('ws');
      const checked = this.checked(this.limited(context, wsReader), this.frameRules, frames);
      return isPromise(checked) ? checked.then(() => undefined, failed) : undefined;
    } catch (error) {
      return failed(error);
    }
  }

  private limited(context: ExecutionContextHost, reader: RequestReader): LimitedRequest {
    const { limiter } = this.services;
    return new LimitedRequest(context, context.getClass(), context.getHandler(), reader, NO_RULES, limiter);
  }

  /** Checks all rules in one call. Throws or rejects if a limit rejects. */
  private checked(request: LimitedRequest, rules: readonly Rule[], times = 1): Awaitable<PendingCheck | undefined> {
    const { check: requestCheck } = this.services;
    const answered =
      times === 1
        ? requestCheck.check(request, rules)
        : andThen(requestCheck.entries(request, rules), (entries) =>
            requestCheck.checkTogether(
              entries.map((entry) => timesAsMuch(entry, times)),
              request,
            ),
          );
    return andThen(answered, (check) => {
      if (check !== undefined) this.services.answers.describe(request, check);
      return check;
    });
  }

  private held(check: StoreCheck | undefined): Lease[] {
    const { store, queues } = this.services;
    return (check?.entries ?? []).flatMap((entry, index) => {
      const units = heldOf(entry, check!.decisions[index]!);
      return units === undefined ? [] : [new Lease(units, store, queues).keepAlive()];
    });
  }

  private async authenticated(
    authenticate: NonNullable<SocketSettings['authenticate']>,
    request: HandshakeRequest,
  ): Promise<unknown> {
    try {
      return await authenticate(request);
    } catch (error) {
      if (error instanceof HttpException) throw error;
      this.attempts.report(socketMessages.authenticateFailed(), error);
      throw new UnauthorizedException(socketMessages.authenticationRequired(), { cause: error });
    }
  }

  /** An error of the app's functions also rejects the request, so that nothing passes uncounted. */
  private refusalOf(error: unknown, what: string): HttpException {
    if (error instanceof HttpException) return error;
    this.attempts.report(socketMessages.failed(what), error);
    return new InternalServerErrorException(socketMessages.internal(), { cause: error });
  }

  private compiled(lists: Partial<Pick<SocketSettings, 'handshakes' | 'connections' | 'frames'>>): readonly Rule[] {
    const rules: Rule[] = [];
    for (const [option, limits] of Object.entries(lists)) {
      const declaration = { location: `rateLimitSockets.${option}`, namespace: `@${option}` };
      const problem = (rule: Rule) => problemOf(rule, declaration.location, option === 'connections');
      rules.push(...listedRules(limits, this.services.registry, declaration, problem, rules));
    }
    return withAncestors(rules, 'rateLimitSockets');
  }
}

function timesAsMuch(entry: RuleEntry, times: number): RuleEntry {
  return { ...entry, cost: Math.min(entry.cost * times, Number.MAX_SAFE_INTEGER) };
}

/** The reason why a limit can't count handshakes, connections or frames; `undefined` if it can. */
function problemOf({ name, settings, limit }: Rule, location: string, isHeld: boolean): string | undefined {
  const { name: algo, queue, leases } = limit.algorithm;
  if (settings.count !== 'all') return socketMessages.counted(location, name);
  if (settings.measure !== undefined) return socketMessages.measured(location, name);
  if (queue !== undefined) return socketMessages.queued(location, name, algo);
  if (isHeld && (leases === undefined || limit.adapts)) return socketMessages.notHeld(location, name, algo);
  return isHeld || leases === undefined ? undefined : socketMessages.held(location, name, algo);
}

/**
 * Reads addresses with the framework's own `request.ip`, because the handshake of a WebSocket never reaches the framework. For a framework
 * other than Express and Fastify, it returns the address of the connection, and logs clients behind a proxy once.
 */
function addressReader(adapter: FrameworkAdapter | undefined): ReadAddress {
  const read = frameworkAddress(adapter);
  if (read !== undefined) return read;
  const log = new OnceLogger(logger);
  return ({ headers, socket }) => {
    if (headers['x-forwarded-for'] !== undefined) log.warn(socketMessages.unknownAddresses());
    return socket.remoteAddress;
  };
}
