import { HttpStatus, Inject, Injectable, RequestMethod } from '@nestjs/common';
import { MetadataScanner, ModulesContainer } from '@nestjs/core';
import { RouteRulesRegistry } from '../../app/rules/route-rules-registry.js';
import { RATE_LIMIT_SETTINGS } from '../../app/config/tokens.js';
import { type RateLimitSettings } from '../../app/config/settings.js';
import { HandlerClasses } from '../../app/rules/handler-classes.js';
import { documentResponses, LateResponses, type Responses, responsesOf } from './late-responses.js';
import { refusalResponse } from './refusal-response.js';

/** The property in which its compiler plugin stores the types of a controller's methods. */
const FOUND = '_OPENAPI_METADATA_FACTORY';
/** A controller, with the plugin's findings. */
interface Documented {
  new (...args: never[]): unknown;
  readonly [FOUND]?: () => Record<string, Record<string, unknown>>;
}

/** Nest's metadata keys of the method and the status of a route. */
const METHOD = 'method';
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
