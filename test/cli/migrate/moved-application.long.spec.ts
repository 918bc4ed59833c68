import { beforeAll, expect, it } from '@jest/globals';
import { ensureBuilt } from '../../support/processes/built.js';
import { AppFolder, compilerErrors, type Files, runApp } from './moved-apps.js';

/** An application of REST and GraphQL, whose guard counts API keys, and addresses without one. */
const APPLICATION: Files = {
  'package.json': '{\n  "dependencies": { "@nestjs/throttler": "^6.4.0" }\n}\n',
  'src/api-key-throttler.guard.ts': `import { type ExecutionContext, Injectable } from '@nestjs/common';
import { GqlExecutionContext } from '@nestjs/graphql';
import { ThrottlerGuard } from '@nestjs/throttler';

@Injectable()
export class ApiKeyThrottlerGuard extends ThrottlerGuard {
  protected override getRequestResponse(context: ExecutionContext) {
    if (context.getType<string>() !== 'graphql') return super.getRequestResponse(context);
    const { req } = GqlExecutionContext.create(context).getContext<{ req: Record<string, any> }>();
    return { req, res: req['res'] };
  }

  protected override async shouldSkip(context: ExecutionContext): Promise<boolean> {
    return this.getRequestResponse(context).req['headers']['x-staff'] === 'yes';
  }

  protected override async getTracker(req: Record<string, any>): Promise<string> {
    return req['headers']['x-api-key'] ?? super.getTracker(req);
  }
}
`,
  'src/cats.controller.ts': `import { Controller, Get, Post } from '@nestjs/common';
import { hours, SkipThrottle, Throttle } from '@nestjs/throttler';

@Controller('cats')
export class CatsController {
  @Get()
  all() {
    return { cats: [] };
  }

  @Throttle({ default: { limit: 1, ttl: hours(2), blockDuration: 600_000 } })
  @Post()
  create() {
    return { created: true };
  }

  @SkipThrottle()
  @Get('free')
  free() {
    return { free: true };
  }
}
`,
  'src/dogs.controller.ts': `import { Controller, Get } from '@nestjs/common';
import { Throttle } from '@nestjs/throttler';

@Throttle({ default: { limit: 1, ttl: 3_600_000 } })
@Controller('dogs')
export class DogsController {
  @Get()
  all() {
    return { dogs: [] };
  }

  @Get('one')
  one() {
    return { dog: 1 };
  }
}
`,
  'src/birds.resolver.ts': `import { Int, Mutation, Query, Resolver } from '@nestjs/graphql';
import { Throttle } from '@nestjs/throttler';

@Resolver()
export class BirdsResolver {
  @Query(() => Int)
  birds() {
    return 1;
  }

  @Throttle({ default: { limit: 1, ttl: 3_600_000 } })
  @Mutation(() => Int)
  addBird() {
    return 1;
  }
}
`,
  'src/app.module.ts': `import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { GraphQLModule } from '@nestjs/graphql';
import { ThrottlerModule } from '@nestjs/throttler';
import { ApiKeyThrottlerGuard } from './api-key-throttler.guard.js';
import { BirdsResolver } from './birds.resolver.js';
import { CatsController } from './cats.controller.js';
import { DogsController } from './dogs.controller.js';

@Module({
  imports: [
    GraphQLModule.forRoot<ApolloDriverConfig>({ driver: ApolloDriver, autoSchemaFile: true }),
    ThrottlerModule.forRoot([{ ttl: 3_600_000, limit: 2 }]),
  ],
  controllers: [CatsController, DogsController],
  providers: [BirdsResolver, { provide: APP_GUARD, useClass: ApiKeyThrottlerGuard }],
})
export class AppModule {}
`,
};

/** Starts an application, makes each call thrice, and prints what it got. */
const CALLER = `import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './src/app.module.js';

const app = await NestFactory.create(AppModule, { logger: false });
await app.listen(0, '127.0.0.1');
const url = await app.getUrl();
const graphql = (query) => ['/graphql', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ query }) }];
const calls = {
  'GET /cats': ['/cats'],
  'GET /cats of a key': ['/cats', { headers: { 'x-api-key': 'a-key' } }],
  'GET /cats of staff': ['/cats', { headers: { 'x-staff': 'yes' } }],
  'POST /cats': ['/cats', { method: 'POST' }],
  'GET /cats/free': ['/cats/free'],
  'GET /dogs': ['/dogs'],
  'GET /dogs/one': ['/dogs/one'],
  '{ birds }': graphql('{ birds }'),
  'mutation { addBird }': graphql('mutation { addBird }'),
};
const answers = [];
for (const [call, [path, options]] of Object.entries(calls)) {
  for (let time = 0; time < 3; time++) {
    const response = await fetch(url + path, options);
    const body = await response.json();
    const refused = response.status === 429 || body.errors !== undefined;
    // The throttler sends no more of them with a refusal.
    const names = refused ? ['retry-after'] : ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset', 'retry-after'];
    const headers = Object.fromEntries(names.map((name) => [name, response.headers.get(name)]));
    answers.push({ call, refused, status: response.status, headers, body: body.errors?.map(({ message, path }) => ({ message, path })) ?? body });
  }
}
console.log(JSON.stringify(answers));
await app.close();
`;

interface Answer {
  readonly call: string;
  readonly refused: boolean;
}

beforeAll(() => ensureBuilt(), 500_000);

const answersOf = async (files: Files): Promise<Answer[]> => JSON.parse(await runApp(files, CALLER)) as Answer[];

it('an application of REST and GraphQL that the command has moved answers nine calls as before', async () => {
  const folder = new AppFolder(APPLICATION);
  const { stdout, code } = await folder.migrate('--force');
  const after = folder.files();
  folder.remove();
  expect(code).toBe(0);
  expect(stdout).not.toContain('Left');
  expect(JSON.stringify(after)).not.toContain('@nestjs/throttler');
  expect(compilerErrors({ before: APPLICATION, after })).toEqual([]);
  const [expected, answers] = [await answersOf(APPLICATION), await answersOf(after)];
  expect(new Set(expected.map(({ call }) => call)).size).toBe(9);
  expect(expected.filter(({ refused }) => refused)).toHaveLength(11);
  expect(answers).toEqual(expected);
}, 240_000);
