import { ServerResponse } from 'node:http';
import { type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { RateLimitSettings } from '../../app/config/settings.js';
import { RATE_LIMIT_RANDOM, RATE_LIMIT_SETTINGS } from '../../app/config/tokens.js';
import { isHeaders, isOwnFormat, retryAfter } from '../../app/http/header-format.js';
import { type LimitInfo, limitInfos } from '../../app/http/limit-info.js';
import { combineResults, shownOf, type ShownResult, spreadWaits } from '../../app/http/reported-result.js';
import { connectionOf } from '../../app/transports/connection.js';
import type { RequestParts } from '../../app/transports/request-reader.js';
import { Attempts, type FailureLog, logger, OnceLogger } from '../../engine/errors/logger.js';
import { messages } from '../../engine/errors/messages/general.js';
import type { CheckedLimit, CheckResult } from '../../engine/limits/decision.js';

/** Shows whether headers can still be set, by the first property in Express and Node, by the second in Fastify; and how. */
interface SendableResponse {
  readonly headersSent?: boolean;
  readonly sent?: boolean;
  readonly header?: unknown;
  readonly setHeader?: unknown;
  readonly getHeader?: unknown;
  readonly json?: unknown;
}

/** Reads the current headers of a response: the same in Node, Express and Fastify. */
interface ReadableResponse {
  getHeader(name: string): unknown;
}

/** The members that Express adds to Node's response. */
interface ExpressResponse extends ReadableResponse {
  readonly headersSent: boolean;
  removeHeader(name: string): void;
  json(body: unknown): unknown;
}

const EXPOSED = 'Access-Control-Expose-Headers';

/** Sets the headers that report limits, on any response that has headers. */
@Injectable()
export class ResponseHeaders {
  private readonly attempts = new Attempts(logger);
  private readonly hidden = new HiddenResponses();
  /** The log message for each formatter that fails. */
  private readonly failures: readonly FailureLog[];

  constructor(
    @Inject(RATE_LIMIT_SETTINGS) private readonly settings: RateLimitSettings,
    private readonly host: HttpAdapterHost,
    @Inject(RATE_LIMIT_RANDOM) private readonly random: () => number,
  ) {
    this.failures = settings.formatters.map((_, index) => ({
      message: messages.headersFailed(index),
      wrong: messages.wrongHeaders,
    }));
  }

  /** Reports a result. A rejection always has `Retry-After`, even without other headers. */
  describe(
    { response, sharesResponse }: RequestParts,
    exact: CheckResult,
    own: readonly CheckedLimit[],
    context: ExecutionContext,
  ): void {
    if (response === undefined || (exact.allowed && this.settings.formatters.length === 0)) return;
    if (sharesResponse !== true) return this.write(response, exact, own, context);
    const { result, shown } = combineResults(response, exact, own);
    this.write(response, result, shown, context);
  }

  private write(
    response: object,
    exact: CheckResult,
    limits: readonly CheckedLimit[],
    context: ExecutionContext,
  ): void {
    this.hidden.warnOfHeaders(response, context);
    const { retryJitter } = this.settings;
    // One random number per response, so that its headers agree.
    const result = exact.allowed || retryJitter === 0 ? exact : spreadWaits(exact, this.random() * retryJitter);
    const shown = shownOf(result, limits);
    const exposed: string[] | undefined = this.settings.exposeHeaders && this.isCrossOrigin(response) ? [] : undefined;
    if (shown !== undefined) this.format(response, shown, context, exposed);
    const seconds = this.retryAfter(result, limits);
    if (seconds !== undefined) {
      this.set(response, 'Retry-After', seconds);
      exposed?.push('Retry-After');
    }
    if (exposed !== undefined) this.expose(response, exposed);
  }

  /** Sets the headers of all formats, and adds their names to `exposed`. */
  private format(
    response: object,
    { result, limits }: ShownResult,
    context: ExecutionContext,
    exposed: string[] | undefined,
  ): void {
    const { formatters } = this.settings;
    const infos = limitInfos(limits, Date.now());
    for (let index = 0; index < formatters.length; index++) {
      const made = this.formatWith(index, response, result, infos, context);
      if (made !== undefined) exposed?.push(...Object.keys(made));
    }
  }

  /** The seconds of `Retry-After`, unless the limit with the longest wait hides them. */
  private retryAfter(result: CheckResult, limits: readonly CheckedLimit[]): string | undefined {
    const { allowed, decisions, tightest } = result;
    const binding = allowed ? undefined : limits[decisions.indexOf(tightest)];
    const isSaid = binding === undefined ? this.settings.retryAfter : !binding.limit.withoutRetryAfter;
    return isSaid ? retryAfter(result, limits) : undefined;
  }

  /** Adds names to the headers that the app, or an earlier check of the request, exposes. */
  private expose(response: object, names: readonly string[]): void {
    const before = this.get(response, EXPOSED);
    const listed = (Array.isArray(before) ? before : [before ?? '']).join(',').split(',');
    const exposed = listed.map((name) => name.trim()).filter((name) => name !== '');
    const known = new Set(exposed.map((name) => name.toLowerCase()));
    const added = names.filter((name) => !known.has(name.toLowerCase()));
    if (added.length > 0) this.set(response, EXPOSED, [...exposed, ...added].join(', '));
  }

  /** Sets the headers of one format. Returns `undefined` if it failed. */
  private formatWith(
    index: number,
    response: object,
    result: CheckResult,
    infos: readonly LimitInfo[],
    context: ExecutionContext,
  ): Record<string, string> | undefined {
    const formatter = this.settings.formatters[index]!;
    const failure = this.failures[index]!;
    try {
      const headers = isOwnFormat(formatter)
        ? formatter(result, infos, context)
        : // A copy, which the formatter may change.
          this.attempts.call(() => formatter(result, [...infos], context), isHeaders, failure);
      if (headers === undefined) return undefined;
      for (const name of Object.keys(headers)) this.set(response, name, headers[name]!);
      return headers;
    } catch (error) {
      this.attempts.report(failure.message, error);
      return undefined;
    }
  }

  /**
   * Sets the content type of an error's body. Nest 11 on Express treats any type but JSON as a mistake, and replaces it with JSON. So the
   * type is set there when the body is sent, unless an exception filter has set another one.
   */
  setType(response: object | undefined, type: string): void {
    const { json }: SendableResponse = response ?? {};
    if (typeof json !== 'function') return this.set(response, 'Content-Type', type);
    const express = response as ExpressResponse;
    if (express.headersSent) return;
    express.removeHeader('Content-Type');
    express.json = (body) => {
      if (express.getHeader('Content-Type') === undefined) this.set(express, 'Content-Type', type);
      return Reflect.apply(json, express, [body]) as unknown;
    };
  }

  set(response: object | undefined, name: string, value: string): void {
    // In the same way as the adapters do with Node's own responses.
    if (response instanceof ServerResponse) {
      if (!response.headersSent) response.setHeader(name, value);
      return;
    }
    const { headersSent, sent, header, setHeader }: SendableResponse = response ?? {};
    if (headersSent === true || sent === true) return;
    if (typeof header !== 'function' && typeof setHeader !== 'function' && !this.isOfAdapter(response)) return;
    this.host.httpAdapter?.setHeader(response, name, value);
  }

  /** Returns true if the app's adapter can write a response without its own methods, because it contains one of Node's. */
  private isOfAdapter(response: object | undefined): boolean {
    return connectionOf(response) !== undefined && this.host.httpAdapter?.isHeadersSent(response) === false;
  }

  /** Reads a header that was set before, by the response itself or by the app's adapter. */
  private get(response: object, name: string): unknown {
    const { getHeader }: SendableResponse = response;
    if (typeof getHeader === 'function') return (response as ReadableResponse).getHeader(name);
    return this.isOfAdapter(response) ? this.host.httpAdapter?.getHeader(response, name) : undefined;
  }

  /** Returns true if the app lets another origin read the response. CORS headers are set before any guard runs. */
  private isCrossOrigin(response: object): boolean {
    return this.get(response, 'Access-Control-Allow-Origin') !== undefined;
  }
}

/** Warns, once per app, about HTTP adapters whose responses lack members that limits need. Responses of other transports may lack them. */
export class HiddenResponses {
  private readonly log = new OnceLogger(logger);

  /** Checks a response that should receive headers. */
  warnOfHeaders(response: object, context: ExecutionContext): void {
    if (response instanceof ServerResponse) return;
    const { header, setHeader }: SendableResponse = response;
    if (typeof header === 'function' || typeof setHeader === 'function') return;
    if (isHidden(response, context)) this.log.warn(messages.hidesHeaders(nameOf(response)));
  }

  /** Checks a response whose end has to be known. */
  warnOfEnd(response: object | undefined, context: ExecutionContext): void {
    if (response !== undefined && isHidden(response, context)) this.log.warn(messages.hidesEnd(nameOf(response)));
  }
}

function isHidden(response: object, context: ExecutionContext): boolean {
  return context.getType() === 'http' && connectionOf(response) === undefined;
}

function nameOf({ constructor }: object): string {
  return typeof constructor === 'function' && constructor.name !== '' ? constructor.name : 'a class without a name';
}
