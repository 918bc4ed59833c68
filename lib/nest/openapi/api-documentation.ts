import { STATUS_CODES } from 'node:http';
import { HttpStatus, Inject, Injectable, RequestMethod } from '@nestjs/common';
import { MetadataScanner, ModulesContainer } from '@nestjs/core';
import type { RateLimitSettings } from '../../app/config/settings.js';
import { RATE_LIMIT_SETTINGS } from '../../app/config/tokens.js';
import { PROBLEM_TYPE } from '../../app/http/refusal-answer.js';
import { HandlerClasses } from '../../app/rules/handler-classes.js';
import { METHOD } from '../../app/rules/route-names.js';
import { RouteRulesRegistry } from '../../app/rules/route-rules-registry.js';
import { documentResponses, LateResponses, type Responses, responsesOf } from './late-responses.js';

/** The property in which its compiler plugin stores the types of a controller's methods. */
const FOUND = '_OPENAPI_METADATA_FACTORY';
/** A controller, with the plugin's findings. */
interface Documented {
  new (...args: never[]): unknown;
  readonly [FOUND]?: () => Record<string, Record<string, unknown>>;
}

/** Nest's metadata key of the status of a route. */
const STATUS = '__httpCode__';

/** Adds the rejections of every route that has limits, mostly 429, to the documentation of `@nestjs/swagger`. */
@Injectable()
export class ApiDocumentation {
  private readonly late = new LateResponses(() => this.write());

  constructor(
    @Inject(RATE_LIMIT_SETTINGS) private readonly settings: RateLimitSettings,
    private readonly plans: RouteRulesRegistry,
    private readonly modules: ModulesContainer,
    private readonly classes: HandlerClasses,
    private readonly scanner: MetadataScanner,
  ) {}

  /** Has to run before the app starts, since most documents are created before that. The responses are added when a document is created. */
  begin(): void {
    for (const type of this.controllers()) {
      // Responses written for a method apply to all classes that inherit it, so none of these may be read before.
      if (inherits(type) || this.classes.mayHaveLimits(type)) this.late.standIn(type);
    }
  }

  end(): void {
    this.late.withdraw();
  }

  private write(): void {
    for (const type of this.controllers()) this.describe(type);
  }

  private controllers(): Documented[] {
    const all = [...this.modules.values()].flatMap(({ controllers }) => [...controllers.values()]);
    return all.map(({ metatype }) => metatype).filter((type) => typeof type === 'function') as Documented[];
  }

  private describe(type: Documented): void {
    const prototype = type.prototype as Record<string, object>;
    const names = this.scanner.getAllMethodNames(prototype);
    const routes = names.filter((name) => Reflect.hasMetadata(METHOD, prototype[name]!));
    const statuses = routes.map((name) => this.plans.refusalStatuses(type, prototype[name]!));
    const known = responsesOf(type) ?? {};
    // Responses that the user has documented stay unchanged.
    const isNew = (status: number) => !Object.hasOwn(known, status);
    const ofAll = [...(statuses[0] ?? [])].filter((status) => isNew(status) && statuses.every((of) => of.has(status)));
    if (ofAll.length > 0) documentResponses(type, { ...known, ...this.refusals(ofAll) });
    for (const [index, name] of routes.entries()) {
      const handler = prototype[name]!;
      const own = responsesOf(handler);
      const missing = [...statuses[index]!].filter(
        (status) => isNew(status) && !ofAll.includes(status) && !Object.hasOwn(own ?? {}, status),
      );
      if (missing.length === 0) continue;
      const responses = own === undefined ? usualResponse(type, name, handler) : { ...own };
      documentResponses(handler, Object.assign(responses, this.refusals(missing)));
    }
  }

  private refusals(statuses: readonly number[]): Responses {
    return Object.fromEntries(statuses.map((status) => [status, refusalResponse(this.settings, status)]));
  }
}

function inherits(type: Documented): boolean {
  return Object.getPrototypeOf(type) !== Function.prototype;
}

/** The default documentation of a route without documented responses. Adding only our rejections would remove it. */
function usualResponse(type: Documented, name: string, handler: object): Responses {
  const isPost = Reflect.getMetadata(METHOD, handler) === RequestMethod.POST;
  const status = Reflect.getMetadata(STATUS, handler) as number | undefined;
  return Object.defineProperty({}, status ?? (isPost ? HttpStatus.CREATED : HttpStatus.OK), {
    enumerable: true,
    // The types that the plugin found may be loaded only just before the document is created.
    get: () => foundResponse(type, name),
  });
}

function foundResponse(type: Documented, name: string): object {
  const found = type[FOUND]?.()[name] ?? {};
  const { summary: _summary, deprecated: _deprecated, tags: _tags, status: _status, ...response } = found;
  const { type: bodyType } = response;
  const body = Array.isArray(bodyType) ? { type: bodyType[0] as unknown, isArray: true } : {};
  return { description: '', ...response, ...body };
}

type Headers = Readonly<Record<string, object>>;

const text = (description: string) => ({ description, schema: { type: 'string' } });
const whole = (description: string) => ({ description, schema: { type: 'integer', minimum: 0 } });

const POLICY = text('The limits: quota and window in seconds');
const numbers = (prefix: string): Headers => ({
  [`${prefix}-Limit`]: whole('Units that can be allowed at once'),
  [`${prefix}-Remaining`]: whole('Units that are left'),
  [`${prefix}-Reset`]: whole('Seconds until a request fits again'),
});

/** The headers of each format. Those that functions set are not known. */
const HEADERS: ReadonlyMap<unknown, Headers> = new Map<unknown, Headers>([
  [
    'draft-8',
    { 'RateLimit-Policy': POLICY, RateLimit: text('The limits: units that are left, and seconds until more fit') },
  ],
  ['draft-6', { 'RateLimit-Policy': POLICY, ...numbers('RateLimit') }],
  ['legacy', numbers('X-RateLimit')],
]);

const TOO_MANY: number = HttpStatus.TOO_MANY_REQUESTS;
const SERVER_ERRORS: number = HttpStatus.INTERNAL_SERVER_ERROR;

function descriptionOf(status: number): string {
  if (status === TOO_MANY) return 'Too many requests';
  return status >= SERVER_ERRORS ? 'Overloaded' : (STATUS_CODES[status] ?? 'Refused');
}

const names = { type: 'array', items: { type: 'string' } };

const usualBody = (status: number) => ({
  type: 'object',
  required: ['statusCode', 'message', 'error', 'limits'],
  properties: {
    statusCode: { type: 'integer', enum: [status] },
    message: { type: 'string' },
    error: { type: 'string' },
    limits: { ...names, description: 'The limits that refused' },
  },
});

const problemBody = (status: number) => ({
  type: 'object',
  required: ['type', 'title', 'status', 'violated-policies'],
  properties: {
    type: { type: 'string', format: 'uri' },
    title: { type: 'string' },
    status: { type: 'integer', enum: [status] },
    detail: { type: 'string' },
    'violated-policies': { ...names, description: 'The limits that refused' },
  },
});

/** Describes the response to a request that limits reject with this status, in the form of OpenAPI. */
function refusalResponse({ options, problem, body, retryAfter }: RateLimitSettings, status: number): object {
  const formats = [options.headers ?? 'draft-8'].flat();
  // Nor is the body known if a function creates it.
  const isKnown = body === undefined && options.answer === undefined;
  const schema = !isKnown ? { type: 'object' } : problem ? problemBody(status) : usualBody(status);
  return {
    description: descriptionOf(status),
    headers: Object.assign(
      retryAfter ? { 'Retry-After': whole('Seconds after which the request fits') } : {},
      ...formats.map((format) => HEADERS.get(format)),
    ) as Headers,
    content: { [problem ? PROBLEM_TYPE : 'application/json']: { schema } },
  };
}
