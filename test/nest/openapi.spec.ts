import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, HttpCode, type INestApplication, Module, Post, type Type } from '@nestjs/common';
import {
  ApiOkResponse,
  ApiProperty,
  ApiServiceUnavailableResponse,
  ApiTooManyRequestsResponse,
  DocumentBuilder,
  type OpenAPIObject,
  SwaggerModule,
} from '@nestjs/swagger';
import { Test } from '@nestjs/testing';
import {
  type LimitDefinition,
  RateLimit,
  RateLimitModule,
  type RateLimitModuleOptions,
  SkipRateLimit,
} from '../../lib/index.js';

const hourly: LimitDefinition = { name: 'hourly', algo: 'fixed-window', rate: 5, interval: '1h' };
const own: LimitDefinition = { algo: 'gcra', rate: 5, interval: '1s' };

class Report {
  @ApiProperty()
  title!: string;
}

/** Classes of their own for each test: what is documented of them stays with them. */
function controllers(): Type[] {
  @Controller('some')
  class SomeController {
    @Get('limited')
    @RateLimit(own)
    limited() {}

    @Post('posted')
    @RateLimit(() => null)
    posted() {}

    @Post('accepted')
    @HttpCode(202)
    @RateLimit('login')
    accepted() {}

    @Get('typed')
    @ApiOkResponse({ type: Report })
    @RateLimit('feature')
    typed() {}

    @Get('told')
    @RateLimit(own)
    @ApiTooManyRequestsResponse({ description: 'Slow down' })
    told() {}

    @Get('free')
    @SkipRateLimit()
    free() {}

    /** No route. */
    @RateLimit(own)
    helper() {}
  }

  @Controller('all')
  @RateLimit(own)
  class AllController {
    @Get('read')
    read() {}

    @Get('told')
    @ApiTooManyRequestsResponse({ description: 'Slow down' })
    told() {}

    @Post('typed')
    @ApiOkResponse({ type: Report })
    typed() {}
  }

  @Controller('class')
  @RateLimit(own)
  @ApiTooManyRequestsResponse({ description: 'Slow down all' })
  class ToldController {
    @Get('read')
    read() {}

    @Get('free')
    @SkipRateLimit()
    free() {}
  }

  @Controller('skipped')
  @RateLimit(own)
  class SkippedController {
    @Get('free')
    @SkipRateLimit('gcra:5/1s', 'hourly')
    free() {}
  }

  return [SomeController, AllController, ToldController, SkippedController];
}

function responsesOf(document: OpenAPIObject, path: string) {
  const { get, post } = document.paths[path] ?? {};
  return (get ?? post)?.responses ?? {};
}

const documented = (target: object) => Reflect.hasMetadata('swagger/apiResponse', target);
const handlersOf = (types: readonly Type[]) =>
  types.flatMap(({ prototype }: { prototype: Record<string, object> }) => {
    const names = Object.getOwnPropertyNames(prototype).filter((name) => name !== 'constructor');
    return names.map((name) => prototype[name]!);
  });

describe('the OpenAPI document', () => {
  let app: INestApplication | undefined;

  async function documentOf(options: RateLimitModuleOptions, types = controllers()): Promise<OpenAPIObject> {
    const testing = await Test.createTestingModule({
      imports: [
        RateLimitModule.forRootAsync({ useFactory: () => Promise.resolve(options) }),
        RateLimitModule.forFeature({ feature: own }),
      ],
      controllers: types,
    }).compile();
    testing.useLogger(false);
    app = testing.createNestApplication();
    // Before the app starts up, as most do.
    const document = SwaggerModule.createDocument(app, new DocumentBuilder().build());
    await app.init();
    expect(SwaggerModule.createDocument(app, new DocumentBuilder().build())).toEqual(document);
    return document;
  }

  afterEach(async () => {
    await app?.close();
    app = undefined;
  });

  const refusal = {
    description: 'Too many requests',
    headers: {
      'Retry-After': expect.objectContaining({ schema: { type: 'integer', minimum: 0 } }),
      'RateLimit-Policy': expect.objectContaining({ schema: { type: 'string' } }),
      RateLimit: expect.objectContaining({ schema: { type: 'string' } }),
    },
    content: {
      'application/json': {
        schema: expect.objectContaining({ required: ['statusCode', 'message', 'error', 'limits'] }),
      },
    },
  };
  const report = {
    description: '',
    content: { 'application/json': { schema: { $ref: '#/components/schemas/Report' } } },
  };
  const nothing = { description: '' };

  it('has the 429 of routes and controllers that have limits, and what it had without it', async () => {
    const document = await documentOf({ define: { login: own } }, controllers().slice(0, 3));
    const all = Object.keys(document.paths).map((path) => [path, responsesOf(document, path)]);
    expect(Object.fromEntries(all)).toEqual({
      '/some/limited': { 200: nothing, 429: refusal },
      '/some/posted': { 201: nothing, 429: refusal },
      '/some/accepted': { 202: nothing, 429: refusal },
      '/some/typed': { 200: report, 429: refusal },
      '/some/told': { 429: { description: 'Slow down' } },
      '/some/free': { 200: nothing },
      '/all/read': { 200: nothing, 429: refusal },
      '/all/told': { 429: { description: 'Slow down' } },
      '/all/typed': { 200: report, 429: refusal },
      '/class/read': { 200: nothing, 429: { description: 'Slow down all' } },
      '/class/free': { 200: nothing, 429: { description: 'Slow down all' } },
    });
  });

  it('has the 429 of the limits of the module on every route that does not skip them', async () => {
    const document = await documentOf({ limits: [hourly], define: { login: own } });
    const limited = Object.keys(document.paths).filter((path) => '429' in responsesOf(document, path));
    expect(Object.keys(document.paths).filter((path) => !limited.includes(path))).toEqual([
      '/some/free',
      '/skipped/free',
    ]);
  });

  it('has the status with which an adaptive limit refuses, beside the 429 of others', async () => {
    const overload: LimitDefinition = { name: 'overload', algo: 'adaptive', scope: 'instance' };
    @Controller('busy')
    @RateLimit({ ...overload, name: 'class', status: 529 })
    class BusyController {
      @Get('read')
      read() {}

      @Get('both')
      @RateLimit(own)
      both() {}

      @Get('free')
      @SkipRateLimit()
      free() {}

      @Get('defined')
      @SkipRateLimit()
      @RateLimit('shed')
      defined() {}

      @Get('nearer')
      @SkipRateLimit('class')
      @RateLimit({ ...own, name: 'overload' })
      nearer() {}
    }
    @Controller('only')
    class OnlyController {
      @Get('read')
      read() {}

      @Get('told')
      @ApiServiceUnavailableResponse({ description: 'Later' })
      told() {}
    }
    const document = await documentOf({ limits: [overload], define: { shed: { ...overload, name: 'shed' } } }, [
      BusyController,
      OnlyController,
    ]);
    const overloaded = { ...refusal, description: 'Overloaded' };
    const statusOf = (status: number) => ({
      ...overloaded,
      content: {
        'application/json': {
          schema: expect.objectContaining({
            properties: expect.objectContaining({ statusCode: { type: 'integer', enum: [status] } }),
          }),
        },
      },
    });
    const all = Object.keys(document.paths).map((path) => [path, responsesOf(document, path)]);
    expect(Object.fromEntries(all)).toEqual({
      '/busy/read': { 200: nothing, 503: statusOf(503), 529: statusOf(529) },
      '/busy/both': { 200: nothing, 429: refusal, 503: statusOf(503), 529: statusOf(529) },
      '/busy/free': { 200: nothing },
      '/busy/defined': { 200: nothing, 503: statusOf(503) },
      '/busy/nearer': { 200: nothing, 429: refusal },
      '/only/read': { 200: nothing, 503: statusOf(503) },
      '/only/told': { 503: { description: 'Later' } },
    });
  });

  it('has nothing of an app without limits', async () => {
    @Controller('plain')
    class PlainController {
      @Get()
      read() {}
    }
    const document = await documentOf({}, [PlainController]);
    expect(responsesOf(document, '/plain')).toEqual({ 200: nothing });
  });

  it.each<[RateLimitModuleOptions, string[], string, string[] | undefined]>([
    [
      { headers: ['legacy', 'draft-6'], problem: true },
      [
        'Retry-After',
        'X-RateLimit-Limit',
        'X-RateLimit-Remaining',
        'X-RateLimit-Reset',
        'RateLimit-Policy',
        'RateLimit-Limit',
        'RateLimit-Remaining',
        'RateLimit-Reset',
      ],
      'application/problem+json',
      ['type', 'title', 'status', 'violated-policies'],
    ],
    [
      { headers: () => ({ 'X-Own': '1' }) },
      ['Retry-After'],
      'application/json',
      ['statusCode', 'message', 'error', 'limits'],
    ],
    [{ headers: false, body: () => ({}) }, ['Retry-After'], 'application/json', undefined],
  ])('tells of the headers and the body that the app sends: %j', async (options, headers, type, required) => {
    const document = await documentOf({ ...options, define: { login: own } }, controllers().slice(0, 1));
    const response = responsesOf(document, '/some/limited')[429] as {
      headers: object;
      content: Record<string, { schema: { required?: string[] } }>;
    };
    expect(Object.keys(response.headers)).toEqual(headers);
    expect(Object.keys(response.content)).toEqual([type]);
    expect(response.content[type]?.schema.required).toEqual(required);
  });

  it('keeps what the compiler plugin found, even if that is loaded later', async () => {
    const [type] = controllers() as [Type & Record<string, unknown>];
    const found = { limited: { type: [Report], summary: 'Lists' }, posted: { status: 201, type: Report } };
    const testing = await Test.createTestingModule({
      imports: [RateLimitModule.forRoot({ define: { login: own, feature: own } })],
      controllers: [type],
    }).compile();
    testing.useLogger(false);
    app = testing.createNestApplication();
    await SwaggerModule.loadPluginMetadata(() =>
      Promise.resolve({
        '@nestjs/swagger': { controllers: [[Promise.resolve({ [type.name]: type }), { [type.name]: found }]] },
      }),
    );
    const document = SwaggerModule.createDocument(app, new DocumentBuilder().build());
    expect(document.paths['/some/limited']?.get?.summary).toBe('Lists');
    expect(responsesOf(document, '/some/limited')).toEqual({
      200: {
        description: '',
        content: { 'application/json': { schema: { type: 'array', items: { $ref: '#/components/schemas/Report' } } } },
      },
      429: refusal,
    });
    expect(responsesOf(document, '/some/posted')).toEqual({ 201: report, 429: refusal });
  });

  describe('until it is made', () => {
    const options: RateLimitModuleOptions = { define: { login: own, feature: own } };

    async function start(types: Type[], given = options, modules: Type[] = []): Promise<INestApplication> {
      const module = RateLimitModule.forRoot(given);
      const testing = await Test.createTestingModule({ imports: [module, ...modules], controllers: types }).compile();
      testing.useLogger(false);
      return testing.createNestApplication().init();
    }

    it('nothing is described of any route', async () => {
      const types = controllers().slice(0, 3);
      const before = handlersOf(types).filter(documented).length;
      app = await start(types);
      expect(handlersOf(types).filter(documented)).toHaveLength(before);
      SwaggerModule.createDocument(app, new DocumentBuilder().build());
      expect(handlersOf(types).filter(documented).length).toBeGreaterThan(before);
    });

    it('a controller shows its responses to whoever reads them', async () => {
      const [, type] = controllers();
      app = await start([type!]);
      const responses = Reflect.getMetadata('swagger/apiResponse', type!) as Record<string, object>;
      expect('429' in responses).toBe(true);
      expect({ ...responses }).toEqual({ 429: expect.objectContaining({ description: 'Too many requests' }) });
      expect(Reflect.getMetadata('swagger/apiResponse', type!)).toEqual(responses);
    });

    it('every document of an app is the same, of inherited routes too', async () => {
      class Base {
        @Get('base')
        base() {}
      }

      @Controller('unlimited')
      class UnlimitedController extends Base {}

      @Controller('limited')
      @RateLimit(own)
      class LimitedController extends Base {
        @Get('free')
        @SkipRateLimit()
        free() {}
      }

      app = await start([UnlimitedController, LimitedController]);
      const [first, second] = [1, 2].map(() => SwaggerModule.createDocument(app!, new DocumentBuilder().build()));
      expect(first!.paths).toEqual(second!.paths);
    });

    it('an app that has closed leaves nothing behind', async () => {
      const types = controllers().slice(0, 3);
      const before = types.map((type) => Reflect.getMetadata('swagger/apiResponse', type) as unknown);
      await (await start(types)).close();
      expect(types.map((type) => Reflect.getMetadata('swagger/apiResponse', type) as unknown)).toEqual(before);
    });

    it('an app still describes its routes when another one with the same controllers has closed', async () => {
      const [, type] = controllers();
      app = await start([type!]);
      await (await start([type!], { ...options, problem: true })).close();
      const document = SwaggerModule.createDocument(app, new DocumentBuilder().build());
      const refused = responsesOf(document, '/all/read')[429] as { content: object };
      expect(Object.keys(refused.content)).toEqual(['application/json']);
    });

    it('apps that close in the order of their starts leave nothing behind', async () => {
      const [, type] = controllers();
      const first = await start([type!]);

      // A controller of two modules.
      @Module({ controllers: [type!] })
      class OtherModule {}

      const second = await start([type!], options, [OtherModule]);
      await first.close();
      await second.close();
      expect(Reflect.getMetadataKeys(type!)).not.toContain('swagger/apiResponse');
    });

    it('a second app with the same controllers makes its own', async () => {
      const [, type] = controllers();
      const first = await start([type!]);
      app = await start([type!], { ...options, problem: true });
      const document = SwaggerModule.createDocument(app, new DocumentBuilder().build());
      const refused = responsesOf(document, '/all/read')[429] as { content: object };
      expect(Object.keys(refused.content)).toEqual(['application/problem+json']);
      await first.close();
    });
  });
});
