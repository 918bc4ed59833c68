import { afterEach, describe, expect, it } from '@jest/globals';
import {
  type CanActivate,
  Controller,
  type ExecutionContext,
  ForbiddenException,
  Get,
  Injectable,
  type Type,
  UnauthorizedException,
  UseGuards,
} from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { AuthGuard, PassportStrategy } from '@nestjs/passport';
import { Int, Query, Resolver } from '@nestjs/graphql';
import { GraphQLError, type GraphQLErrorExtensions } from 'graphql';
import { Strategy } from 'passport';
import { of } from 'rxjs';
import {
  type Count,
  type LimitDefinition,
  RateLimit,
  type RateLimitModuleOptions,
  RateLimitRejections,
} from '../../lib/index.js';
import { GraphqlApp } from '../integrations/graphql/graphql-app.js';
import { type Framework, frameworks, HttpApp } from '../e2e/http-app.js';

interface Caller {
  headers: Record<string, string | undefined>;
  user?: unknown;
}

/** Accepts the token 'good', as strategies for JWTs or API keys accept theirs. */
class TokenStrategy extends Strategy {
  override authenticate(request: object): void {
    if ((request as Caller).headers['authorization'] === 'good') this.success({ id: 7 });
    else this.fail('Bearer', 401);
  }
}

@Injectable()
class Tokens extends PassportStrategy(TokenStrategy, 'token') {
  validate(): unknown {
    return undefined;
  }
}

const limits: RateLimitModuleOptions = {
  define: {
    rejected: { algo: 'fixed-window', rate: 2, interval: '1m', key: 'ip' },
    own: { algo: 'fixed-window', rate: 4, interval: '1m', key: 'user' },
  },
};

@Controller()
class Reports {
  @Get('reports')
  @RateLimit('own')
  list() {}
}

const valid = { authorization: 'good' };

let app: HttpApp | undefined;
afterEach(async () => {
  await app?.close();
  app = undefined;
});

async function start(framework: Framework, guard: Type<CanActivate>, isGlobal = true): Promise<HttpApp> {
  @Controller()
  @UseGuards(guard)
  class Guarded extends Reports {}
  app = await HttpApp.start(framework, {
    controllers: [isGlobal ? Reports : Guarded],
    providers: [Tokens, ...(isGlobal ? [{ provide: APP_GUARD, useClass: guard }] : [])],
    limits,
  });
  return app;
}

describe.each(frameworks)('a guard of Passport, over %s', (framework) => {
  it.each([true, false])('limits by address what it rejects, and nobody else (global: %j)', async (isGlobal) => {
    await start(framework, RateLimitRejections(AuthGuard('token'), 'rejected'), isGlobal);
    expect(await app!.statuses(4, '/reports', { authorization: 'guess' })).toEqual([401, 401, 429, 429]);
    // A valid token of the same address is limited by its user only.
    expect(await app!.statuses(5, '/reports', valid)).toEqual([200, 200, 200, 200, 429]);
    const refused = await app!.get('/reports');
    expect(refused.status).toBe(429);
    expect(refused.headers.get('retry-after')).toBe('60');
    expect(await refused.json()).toMatchObject({ statusCode: 429, limits: ['rejected'] });
  });

  it('counts nothing that it accepts', async () => {
    await start(framework, RateLimitRejections(AuthGuard('token'), 'rejected'));
    expect(await app!.statuses(4, '/reports', valid)).toEqual([200, 200, 200, 200]);
    expect(await app!.statuses(3, '/reports')).toEqual([401, 401, 429]);
  });
});

/** A guard that answers in a certain way. */
function guardThat(answer: () => ReturnType<CanActivate['canActivate']>): Type<CanActivate> {
  @Injectable()
  class OwnGuard implements CanActivate {
    canActivate(_context: ExecutionContext) {
      return answer();
    }
  }
  return RateLimitRejections(OwnGuard, 'rejected');
}

const failing = (error: Error) => () => {
  throw error;
};

const graphqlError = (extensions: object) =>
  new GraphQLError('no', { extensions: extensions as GraphQLErrorExtensions });

describe('a guard', () => {
  it.each<[string, () => ReturnType<CanActivate['canActivate']>, number[]]>([
    ['returns false', () => false, [403, 403, 429]],
    ['resolves to false', async () => false, [403, 403, 429]],
    ['emits false', () => of(false), [403, 403, 429]],
    ['throws a 401', failing(new UnauthorizedException()), [401, 401, 429]],
    ['rejects with a 403', async () => Promise.reject(new ForbiddenException()), [403, 403, 429]],
    ['has a mistake', failing(new TypeError('no')), [500, 500, 500]],
    ['returns true', () => true, [200, 200, 200]],
    ['emits true', () => of(true), [200, 200, 200]],
  ])('that %s', async (_, answer, statuses) => {
    @Controller()
    class Open {
      @Get('open')
      list() {}
    }
    app = await HttpApp.start('express', {
      controllers: [Open],
      providers: [{ provide: APP_GUARD, useClass: guardThat(answer) }],
      limits,
    });
    expect(await app.statuses(3, '/open')).toEqual(statuses);
  });

  it('counts by the limits that its own is within, too', async () => {
    app = await HttpApp.start('express', {
      controllers: [Reports],
      providers: [{ provide: APP_GUARD, useClass: guardThat(() => false) }],
      limits: {
        define: {
          ...limits.define,
          rejected: { algo: 'fixed-window', rate: 3, interval: '1m', key: 'ip', within: 'total' },
          total: { algo: 'fixed-window', rate: 1, interval: '1m', key: () => 'all' },
        },
      },
    });
    expect(await app.statuses(3, '/reports')).toEqual([403, 429, 429]);
  });

  it.each<[string, Count, number[]]>([
    ['only some', ({ statusCode }) => statusCode === 401, [401, 403, 401, 403, 429, 403]],
    ['with units', ({ statusCode }) => (statusCode === 401 ? 2 : 0), [401, 403, 429, 403, 429, 403]],
    ['by a promise', async ({ statusCode, failed }) => failed && statusCode === 403, [401, 403, 401, 403, 401, 429]],
    ['by a function that throws', failing(new Error('no')), [401, 403, 429, 429, 429, 429]],
    ['what succeeded', 'succeeded', [401, 403, 401, 403, 401, 403]],
  ])('counts %s as its limit says', async (_, count, statuses) => {
    const errors = [new UnauthorizedException(), new ForbiddenException()];
    let at = 0;
    app = await HttpApp.start('express', {
      controllers: [Reports],
      providers: [{ provide: APP_GUARD, useClass: guardThat(() => failing(errors[at++ % 2]!)()) }],
      limits: { define: { ...limits.define, rejected: { ...limits.define!['rejected'], count } as LimitDefinition } },
    });
    expect(await app.statuses(6, '/reports')).toEqual(statuses);
  });

  it.each<[string, Error, string[]]>([
    ['the code UNAUTHENTICATED', graphqlError({ code: 'UNAUTHENTICATED' }), ['no', 'no', 'Too many requests']],
    ['the code FORBIDDEN', graphqlError({ code: 'FORBIDDEN' }), ['no', 'no', 'Too many requests']],
    ['a status', graphqlError({ http: { status: 401 } }), ['no', 'no', 'Too many requests']],
    ['another code', graphqlError({ code: 'BAD_USER_INPUT' }), ['no', 'no', 'no']],
  ])('of GraphQL may throw a GraphQLError with %s', async (_, error, texts) => {
    @Resolver()
    @UseGuards(guardThat(failing(error)))
    class Guarded {
      @Query(() => Int)
      one() {
        return 1;
      }
    }
    const graphql = await GraphqlApp.start('Apollo on Express', { providers: [Guarded], limits });
    app = graphql.app;
    const found: string[] = [];
    while (found.length < texts.length) found.push((await graphql.ask('{ one }')).errors![0]!.message);
    expect(found).toEqual(texts);
  });

  it('keeps what is injected into it', async () => {
    @Injectable()
    class Keys {
      readonly valid = 'good';
    }
    @Injectable()
    class KeyGuard implements CanActivate {
      constructor(private readonly keys: Keys) {}

      canActivate(context: ExecutionContext) {
        return context.switchToHttp().getRequest<Caller>().headers['authorization'] === this.keys.valid;
      }
    }
    app = await HttpApp.start('express', {
      controllers: [Reports],
      providers: [Keys, { provide: APP_GUARD, useClass: RateLimitRejections(KeyGuard, 'rejected') }],
      limits,
    });
    expect(await app.statuses(3, '/reports')).toEqual([403, 403, 429]);
    expect((await app.get('/reports', valid)).status).not.toBe(403);
  });

  it.each([true, false])('of an unknown limit is refused at start (global: %j)', async (isGlobal) => {
    const guard = RateLimitRejections(AuthGuard('token'), 'rejcted');
    await expect(start('express', guard, isGlobal)).rejects.toThrow(
      /unknown limit 'rejcted'\. Did you mean 'rejected'\?/,
    );
  });
});
