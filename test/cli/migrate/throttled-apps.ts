/** An application that uses `@nestjs/throttler`: its version, and the files that have to do with it. */
export interface ThrottledApp {
  readonly version: string;
  readonly files: Readonly<Record<string, string>>;
  /** Packages that it has besides. */
  readonly packages?: Readonly<Record<string, string>>;
}

const controller = (imports: string, body: string): string =>
  `import { Controller, Get, Post, UseGuards } from '@nestjs/common';\n${imports}\n${body}`;

/** Made anew, in the shapes that public applications have. */
export const throttledApps: Readonly<Record<string, ThrottledApp>> = {
  'one limit for all, some routes stricter': {
    version: '^6.4.0',
    files: {
      'app.module.ts': `import { Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler';
import { AuthController } from './auth.controller';

@Module({
  imports: [
    // Generous; logins have their own.
    ThrottlerModule.forRoot([{ ttl: 60_000, limit: 100 }]),
  ],
  controllers: [AuthController],
  providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
})
export class AppModule {}
`,
      'auth.controller.ts': `import { Controller, Get, Post } from '@nestjs/common';
import { SkipThrottle, Throttle } from '@nestjs/throttler';

@Controller('auth')
export class AuthController {
  @Post('register')
  @Throttle({ default: { limit: 5, ttl: 60_000 } }) // five a minute
  register() {}

  @Throttle({ default: { ttl: 15 * 60 * 1000, limit: 3 } })
  @Post('forgot')
  forgot() {}

  @Get('health')
  @SkipThrottle()
  health() {}
}
`,
    },
  },
  'version 4, in seconds': {
    version: '^4.2.1',
    files: {
      'app.module.ts': `import { Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler';

@Module({
  imports: [
    ThrottlerModule.forRoot({
      ttl: 60, // seconds
      limit: 10,
      ignoreUserAgents: [/googlebot/gi],
    }),
  ],
  providers: [
    {
      provide: APP_GUARD,
      useClass: ThrottlerGuard,
    },
  ],
})
export class AppModule {}
`,
      'feedback.controller.ts': controller(
        `import { SkipThrottle, Throttle } from '@nestjs/throttler';\n`,
        `const LOGIN_SECONDS = 300;

@Controller('feedback')
export class FeedbackController {
  @Post()
  @Throttle(5, 60)
  send() {}

  @Post('login')
  @Throttle(10, LOGIN_SECONDS)
  login() {}

  @SkipThrottle()
  @Get()
  all() {}

  @SkipThrottle(true)
  @Get('some')
  some() {}
}
`,
      ),
    },
  },
  'REST and GraphQL behind a proxy': {
    version: '6.4.0',
    files: {
      'app.module.ts': `import { Module } from '@nestjs/common';
import { ConfigModule, ConfigService } from '@nestjs/config';
import { ThrottlerModule } from '@nestjs/throttler';

@Module({
  imports: [
    ThrottlerModule.forRootAsync({
      imports: [ConfigModule],
      inject: [ConfigService],
      useFactory: async (configService: ConfigService) => [
        {
          ttl: +configService.get('RATE_LIMIT_TTL'),
          limit: +configService.get('RATE_LIMIT_MAX'),
        },
      ],
    }),
  ],
})
export class AppModule {}
`,
      'guards/gql-throttler.guard.ts': `import { ExecutionContext, Injectable } from '@nestjs/common';
import { GqlExecutionContext } from '@nestjs/graphql';
import { ThrottlerGuard } from '@nestjs/throttler';

@Injectable()
export class GqlThrottlerGuard extends ThrottlerGuard {
  getRequestResponse(context: ExecutionContext) {
    const ctx = GqlExecutionContext.create(context).getContext();
    return { req: ctx.req, res: ctx.res };
  }

  protected async getTracker(req: Record<string, any>): Promise<string> {
    return req.ips.length ? req.ips[0] : req.ip; // behind a proxy
  }
}
`,
      'guards/throttler-behind-proxy.guard.ts': `import { Injectable } from '@nestjs/common';
import { ThrottlerGuard } from '@nestjs/throttler';

@Injectable()
export class ThrottlerBehindProxyGuard extends ThrottlerGuard {
  protected async getTracker(req: Record<string, any>): Promise<string> {
    return req.ips.length ? req.ips[0] : req.ip;
  }
}
`,
      'team.resolver.ts': `import { UseGuards } from '@nestjs/common';
import { Int, Query, Resolver } from '@nestjs/graphql';
import { SkipThrottle } from '@nestjs/throttler';
import { GqlThrottlerGuard } from './guards/gql-throttler.guard';

@UseGuards(GqlThrottlerGuard)
@Resolver()
export class TeamResolver {
  @Query(() => Int)
  teams() {
    return 1;
  }

  @SkipThrottle()
  @Query(() => Int)
  team() {
    return 1;
  }
}
`,
      'auth.controller.ts': controller(
        `import { Throttle } from '@nestjs/throttler';
import { ThrottlerBehindProxyGuard } from './guards/throttler-behind-proxy.guard';\n`,
        `@UseGuards(ThrottlerBehindProxyGuard)
@Controller({ path: 'auth', version: '1' })
export class AuthController {
  @Post('signin')
  @Throttle({ default: { limit: 10, ttl: 60_000 } })
  signIn() {}

  @Get('verify')
  verify() {}
}
`,
      ),
    },
  },
  'three named throttlers': {
    version: '^5.1.1',
    files: {
      'app.module.ts': `import { Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler';

@Module({
  imports: [
    ThrottlerModule.forRoot([
      {
        name: 'short',
        ttl: 1000,
        limit: 3,
      },
      {
        name: 'medium',
        ttl: 10000,
        limit: 20,
      },
      {
        name: 'long',
        ttl: 60000,
        limit: 100,
      },
    ]),
  ],
  providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
})
export class AppModule {}
`,
      'employees.controller.ts': controller(
        `import { SkipThrottle, Throttle } from '@nestjs/throttler';\n`,
        `@SkipThrottle()
@Controller('employees')
export class EmployeesController {
  @SkipThrottle({
    short: true,
    long: true,
  })
  @Get()
  all() {}

  @Throttle({ short: { ttl: 1000, limit: 1 } })
  @Get(':id')
  one() {}

  @Throttle({ short: { limit: 5, ttl: 1000 }, long: { limit: 30, ttl: 60000 } })
  @Post()
  create() {}

  @SkipThrottle({ short: true, medium: true, long: true })
  @Get('health')
  health() {}
}
`,
      ),
    },
  },
  'counters in Redis, of an injected service': {
    version: '^6.2.1',
    packages: { '@nest-lab/throttler-storage-redis': '^1.0.0', ioredis: '^5.4.1' },
    files: {
      'redis.module.ts': `import { Injectable, Module } from '@nestjs/common';
import { Redis } from 'ioredis';

@Injectable()
export class RedisService {
  readonly client = new Redis();
  getClient() {
    return this.client;
  }
}

@Module({ providers: [RedisService], exports: [RedisService] })
export class RedisModule {}
`,
      'app.module.ts': `import { ThrottlerStorageRedisService } from '@nest-lab/throttler-storage-redis';
import { Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler';
import { JwtAuthGuard } from './jwt-auth.guard';
import { RedisModule, RedisService } from './redis.module';

@Module({
  imports: [
    ThrottlerModule.forRootAsync({
      imports: [RedisModule],
      inject: [RedisService],
      useFactory: (redisService: RedisService) => ({
        throttlers: [
          { name: 'default', ttl: 60000, limit: 1000 },
          { name: 'auth', ttl: 900000, limit: 30, blockDuration: 30 * 60 * 1000 },
        ],
        errorMessage: 'Too many tries. Come back later.',
        storage: new ThrottlerStorageRedisService(redisService.getClient()),
      }),
    }),
  ],
  providers: [
    { provide: APP_GUARD, useClass: JwtAuthGuard },
    { provide: APP_GUARD, useClass: ThrottlerGuard },
  ],
})
export class AppModule {}
`,
      'jwt-auth.guard.ts': `import { Injectable } from '@nestjs/common';

@Injectable()
export class JwtAuthGuard {
  canActivate() {
    return true;
  }
}
`,
      'health.controller.ts': controller(
        `import { SkipThrottle } from '@nestjs/throttler';\n`,
        `@SkipThrottle({ default: true, auth: true, leads: true })
@Controller('health')
export class HealthController {
  @Get()
  check() {}
}
`,
      ),
    },
  },
  'a class that makes the options, in seconds': {
    version: '~4.0.0',
    packages: { 'nestjs-throttler-storage-redis': '^0.3.0', ioredis: '^5.3.0' },
    files: {
      'throttlers.config.ts': `import { Inject } from '@nestjs/common';
import { ConfigService } from '@nestjs/config';
import { ThrottlerModuleOptions, ThrottlerOptionsFactory } from '@nestjs/throttler';
import { Redis, type RedisOptions } from 'ioredis';
import { ThrottlerStorageRedisService } from 'nestjs-throttler-storage-redis';

export class ThrottlersConfig implements ThrottlerOptionsFactory {
  constructor(@Inject(ConfigService) private readonly config: ConfigService) {}

  public createThrottlerOptions(): ThrottlerModuleOptions {
    const options: RedisOptions = {};
    const path = \`\${this.config.get('REDIS_URL')}/1\`;
    if (this.config.get('APP_ENV') !== 'local') options.tls = { rejectUnauthorized: false };

    return {
      ttl: 60,
      limit: 10,
      storage: new ThrottlerStorageRedisService(new Redis(path, options)),
    };
  }
}
`,
      'app.module.ts': `import { Module } from "@nestjs/common";
import { APP_GUARD } from "@nestjs/core";
import { ThrottlerGuard, ThrottlerModule } from "@nestjs/throttler";
import { ThrottlersConfig } from "./throttlers.config";

@Module({
  imports: [ThrottlerModule.forRootAsync({ useClass: ThrottlersConfig })],
  providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
})
export class AppModule {}
`,
    },
  },
  'constants of a file': {
    version: '^6.0.0',
    files: {
      'constants/throttle.constants.ts': `export const THROTTLE = {
  DEFAULT: { limit: 60, ttl: 60_000 },
  AUTH: { limit: 5, ttl: 60_000, blockDuration: 300_000 },
} as const;

export const WEBHOOK_THROTTLE = { default: { limit: 1200, ttl: 60_000 } };
export const ONE_MINUTE = 60_000;
`,
      'app.module.ts': `import { Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler';
import { THROTTLE } from './constants/throttle.constants';

@Module({
  imports: [ThrottlerModule.forRoot({ throttlers: [{ name: 'default', ...THROTTLE.DEFAULT }] })],
  providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
})
export class AppModule {}
`,
      'auth.controller.ts': controller(
        `import { Throttle } from '@nestjs/throttler';
import { ONE_MINUTE, THROTTLE, WEBHOOK_THROTTLE } from './constants/throttle.constants';\n`,
        `@Throttle({ default: THROTTLE.AUTH })
@Controller('auth')
export class AuthController {
  @Post('login')
  @Throttle({ default: { limit: 3, ttl: ONE_MINUTE * 5 } })
  login() {}

  @Post('webhook')
  @Throttle(WEBHOOK_THROTTLE)
  webhook() {}
}
`,
      ),
    },
  },
  'users instead of addresses': {
    version: '^6.3.0',
    files: {
      'throttler/user-throttler.guard.ts': `import { Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { JwtService } from '../jwt.service';
import {
  InjectThrottlerOptions,
  InjectThrottlerStorage,
  ThrottlerGuard,
  ThrottlerModuleOptions,
  ThrottlerStorage,
} from '@nestjs/throttler';

@Injectable()
export class UserThrottlerGuard extends ThrottlerGuard {
  constructor(
    @InjectThrottlerOptions()
    options: ThrottlerModuleOptions,
    @InjectThrottlerStorage()
    storageService: ThrottlerStorage,
    reflector: Reflector,
    private readonly jwtService: JwtService,
  ) {
    super(options, storageService, reflector);
  }

  protected override async getTracker(req: Record<string, any>): Promise<string> {
    const [type, token] = req.headers?.authorization?.split(' ') ?? [];
    if (type === 'Bearer' && token) {
      try {
        const payload = await this.jwtService.verifyAsync(token);
        return \`user:\${payload.sub}\`;
      } catch {
        return super.getTracker(req);
      }
    }
    return super.getTracker(req);
  }
}
`,
      'jwt.service.ts': `import { Injectable } from '@nestjs/common';

@Injectable()
export class JwtService {
  async verifyAsync(token: string): Promise<{ sub: string }> {
    return { sub: token };
  }
}
`,
      'app.module.ts': `import { Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { seconds, ThrottlerModule } from '@nestjs/throttler';
import { JwtService } from './jwt.service';
import { UserThrottlerGuard } from './throttler/user-throttler.guard';

@Module({
  imports: [
    ThrottlerModule.forRoot({
      throttlers: [{ ttl: seconds(60), limit: 120 }],
      skipIf: (context) => context.getType() !== 'http',
    }),
  ],
  providers: [JwtService, { provide: APP_GUARD, useClass: UserThrottlerGuard }],
})
export class AppModule {}
`,
    },
  },
  'tenants, and staff that is not limited': {
    version: '^6.4.0',
    files: {
      'staff-aware-throttler.guard.ts': `import { ExecutionContext, Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { ThrottlerGuard, ThrottlerModuleOptions, ThrottlerStorage } from '@nestjs/throttler';

const STAFF = new Set(['admin', 'support']);

/** Staff passes. */
@Injectable()
export class StaffAwareThrottlerGuard extends ThrottlerGuard {
  constructor(options: ThrottlerModuleOptions, storageService: ThrottlerStorage, reflector: Reflector) {
    super(options, storageService, reflector);
  }

  async canActivate(context: ExecutionContext): Promise<boolean> {
    if (context.getType() !== 'http') {
      return true;
    }
    const { user } = context.switchToHttp().getRequest();
    if (user?.role && STAFF.has(user.role)) return true;
    return await super.canActivate(context);
  }

  protected async getTracker(req: Record<string, any>): Promise<string> {
    const tenant = req.headers['x-tenant-id'] ?? 'global';
    return \`\${tenant}:\${req.ip}\`;
  }
}
`,
      'app.module.ts': `import { Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { ThrottlerModule } from '@nestjs/throttler';
import { RolesGuard } from './roles.guard';
import { StaffAwareThrottlerGuard } from './staff-aware-throttler.guard';

@Module({
  imports: [
    ThrottlerModule.forRoot({
      throttlers: [{ name: 'default', ttl: 60_000, limit: Number(process.env['LIMIT'] ?? 600) }],
    }),
  ],
  providers: [
    {
      provide: APP_GUARD,
      useClass: RolesGuard,
    },
    {
      provide: APP_GUARD,
      useClass: StaffAwareThrottlerGuard,
    },
  ],
})
export class AppModule {}
`,
      'roles.guard.ts': `import { Injectable } from '@nestjs/common';

@Injectable()
export class RolesGuard {
  canActivate() {
    return true;
  }
}
`,
    },
  },
  'a login with words of its own': {
    version: '^6.4.0',
    files: {
      'login-throttler.guard.ts': `import { ExecutionContext, HttpException, HttpStatus, Injectable } from '@nestjs/common';
import { ThrottlerGuard } from '@nestjs/throttler';

@Injectable()
export class LoginThrottlerGuard extends ThrottlerGuard {
  protected async throwThrottlingException(context: ExecutionContext): Promise<void> {
    throw new HttpException(
      {
        statusCode: HttpStatus.TOO_MANY_REQUESTS,
        error: 'Too Many Requests',
        message: 'Too many tries. Wait a minute.',
      },
      HttpStatus.TOO_MANY_REQUESTS,
    );
  }
}
`,
      'login.module.ts': `import { Module } from '@nestjs/common';
import { ThrottlerModule } from '@nestjs/throttler';
import { LoginController } from './login.controller';

@Module({
  imports: [ThrottlerModule.forRoot([{ ttl: 60_000, limit: 5 }])],
  controllers: [LoginController],
  exports: [ThrottlerModule],
})
export class LoginModule {}
`,
      'login.controller.ts': controller(
        `import { LoginThrottlerGuard } from './login-throttler.guard';\n`,
        `@Controller('login')
export class LoginController {
  @Post()
  @UseGuards(LoginThrottlerGuard)
  login() {}

  @Get()
  form() {}
}
`,
      ),
    },
  },
  'what is skipped by function': {
    version: '^6.1.0',
    files: {
      'app.module.ts': `import { type ExecutionContext, Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { hours, minutes, ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler';
import { HealthController } from './health.controller';

const isTest = (_context: ExecutionContext) => process.env['NODE_ENV'] === 'test';

@Module({
  imports: [
    ThrottlerModule.forRoot({
      throttlers: [
        { name: 'burst', ttl: minutes(1), limit: 600, skipIf: (ctx) => ctx.getClass() === HealthController },
        {
          name: 'daily',
          ttl: hours(24),
          limit: 10_000,
          getTracker: (req) => req.headers['x-api-key'],
        },
      ],
      skipIf: isTest,
      ignoreUserAgents: [/uptime/i, /pingdom/i],
    }),
  ],
  controllers: [HealthController],
  providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
})
export class AppModule {}
`,
      'health.controller.ts': controller(
        '',
        `@Controller('health')
export class HealthController {
  @Get()
  check() {}
}
`,
      ),
    },
  },
  'decorators of its own': {
    version: '^6.4.0',
    files: {
      'throttle.decorators.ts': `import { applyDecorators, UseGuards } from '@nestjs/common';
import { minutes, SkipThrottle, Throttle, ThrottlerGuard } from '@nestjs/throttler';

export const StrictThrottle = () => Throttle({ default: { limit: 5, ttl: minutes(15) } });

export function Limited(limit: number, ttlMinutes: number) {
  return applyDecorators(
    UseGuards(ThrottlerGuard),
    Throttle({ default: { limit, ttl: minutes(ttlMinutes) } }),
  );
}

export const Unlimited = () => applyDecorators(SkipThrottle());
`,
      'app.module.ts': `import { Module } from '@nestjs/common';
import { ThrottlerModule } from '@nestjs/throttler';

@Module({ imports: [ThrottlerModule.forRoot([{ limit: 50, ttl: 60000 }])] })
export class AppModule {}
`,
      'orders.controller.ts': controller(
        `import { Limited, StrictThrottle, Unlimited } from './throttle.decorators';\n`,
        `@Controller('orders')
export class OrdersController {
  @Post()
  @Limited(3, 10)
  create() {}

  @Get()
  @StrictThrottle()
  all() {}

  @Get('open')
  @Unlimited()
  open() {}
}
`,
      ),
    },
  },
  'a filter of the exception': {
    version: '^6.4.0',
    files: {
      'throttler-exception.filter.ts': `import { ArgumentsHost, Catch, ExceptionFilter, HttpStatus } from '@nestjs/common';
import { ThrottlerException } from '@nestjs/throttler';

@Catch(ThrottlerException)
export class ThrottlerExceptionFilter implements ExceptionFilter {
  catch(_exception: ThrottlerException, host: ArgumentsHost) {
    const res = host.switchToHttp().getResponse();
    res.status(HttpStatus.TOO_MANY_REQUESTS).json({ code: 'RATE_LIMITED' });
  }
}
`,
      'otp.service.ts': `import { Injectable } from '@nestjs/common';
import { ThrottlerException } from '@nestjs/throttler';

@Injectable()
export class OtpService {
  private readonly sent = new Map<string, number>();

  send(phone: string) {
    if (this.sent.has(phone)) throw new ThrottlerException('A code was sent already');
    this.sent.set(phone, Date.now());
  }

  again(error: unknown) {
    return error instanceof ThrottlerException;
  }
}
`,
      'app.module.ts': `import { Module } from '@nestjs/common';
import { APP_FILTER, APP_GUARD } from '@nestjs/core';
import { ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler';
import { ThrottlerExceptionFilter } from './throttler-exception.filter';

@Module({
  imports: [ThrottlerModule.forRoot({ throttlers: [{ limit: 10, ttl: 1000 }], setHeaders: false })],
  providers: [
    { provide: APP_GUARD, useClass: ThrottlerGuard },
    { provide: APP_FILTER, useClass: ThrottlerExceptionFilter },
  ],
})
export class AppModule {}
`,
    },
  },
  'Redis if there is one': {
    version: '^6.4.0',
    packages: { '@nest-lab/throttler-storage-redis': '^1.1.0' },
    files: {
      'app.module.ts': `import { ThrottlerStorageRedisService } from '@nest-lab/throttler-storage-redis';
import { Logger, Module } from '@nestjs/common';
import { ConfigModule, ConfigService } from '@nestjs/config';
import { APP_GUARD } from '@nestjs/core';
import { ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler';

@Module({
  imports: [
    ThrottlerModule.forRootAsync({
      imports: [ConfigModule],
      inject: [ConfigService],
      useFactory: (configService: ConfigService) => {
        const redisUrl = configService.get<string>('REDIS_URL');
        const ttl = configService.get<number>('THROTTLE_TTL', 60 * 1000);
        const limit = configService.get<number>('THROTTLE_LIMIT', 10);
        if (!redisUrl) Logger.warn('Throttler counts in memory', 'ThrottlerModule');

        return {
          throttlers: [{ ttl: Number(ttl), limit: Number(limit) }],
          storage: redisUrl ? new ThrottlerStorageRedisService(redisUrl) : undefined,
        };
      },
    }),
  ],
  providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
})
export class AppModule {}
`,
    },
  },
  'tests that turn the guard off': {
    version: '^6.4.0',
    files: {
      'auth.module.ts': `import { Module } from '@nestjs/common';
import { ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler';
import { AuthController } from './auth.controller';

@Module({
  imports: [ThrottlerModule.forRoot([{ ttl: 10000, limit: 10 }])],
  controllers: [AuthController],
  providers: [ThrottlerGuard],
})
export class AuthModule {}
`,
      'auth.controller.ts': controller(
        `import { Throttle, ThrottlerGuard } from '@nestjs/throttler';\n`,
        `@Controller('auth')
@UseGuards(ThrottlerGuard)
export class AuthController {
  @Post('login')
  @Throttle({ default: { limit: 2, ttl: 10_000 } })
  login() {}
}
`,
      ),
      'auth.controller.spec.ts': `import { Test } from '@nestjs/testing';
import { ThrottlerGuard } from '@nestjs/throttler';
import { AuthController } from './auth.controller';

export const started = () =>
  Test.createTestingModule({ controllers: [AuthController] })
    .overrideGuard(ThrottlerGuard)
    .useValue({ canActivate: () => true })
    .compile();
`,
    },
  },
  'options of a function': {
    version: '^6.4.0',
    files: {
      'throttle.config.ts': `export function getDefaultThrottleConfig() {
  return { name: 'default', ttl: Number(process.env['THROTTLE_TTL'] ?? 60_000), limit: 100 };
}
`,
      'api/throttler.factory.ts': `import { ConfigService } from '@nestjs/config';

async function useThrottlerFactory(config: ConfigService) {
  return {
    throttlers: [{ ttl: config.get('throttler.ttl', { infer: true }), limit: config.get('throttler.limit') }],
  };
}

export default useThrottlerFactory;
`,
      'api/api.module.ts': `import { Module } from '@nestjs/common';
import { ConfigModule, ConfigService } from '@nestjs/config';
import { ThrottlerModule } from '@nestjs/throttler';
import useThrottlerFactory from './throttler.factory';

@Module({
  imports: [
    ThrottlerModule.forRootAsync({
      imports: [ConfigModule],
      inject: [ConfigService],
      useFactory: useThrottlerFactory,
    }),
  ],
})
export class ApiModule {}
`,
      'app.module.ts': `import { Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler';
import { getDefaultThrottleConfig } from './throttle.config';

@Module({
  imports: [
    ThrottlerModule.forRoot({
      throttlers: [getDefaultThrottleConfig()],
    }),
  ],
  providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
})
export class AppModule {}
`,
    },
  },
  'limits that nothing applies': {
    version: '^6.4.0',
    files: {
      'app.module.ts': `import { Module } from '@nestjs/common';
import { ThrottlerModule } from '@nestjs/throttler';
import { GamesController } from './games.controller';

@Module({
  imports: [
    ThrottlerModule.forRoot({
      throttlers: [{ ttl: 60000, limit: 60 }],
    }),
  ],
  controllers: [GamesController],
})
export class AppModule {}
`,
      'games.controller.ts': controller(
        `import { Throttle } from '@nestjs/throttler';\n`,
        `@Controller('games')
export class GamesController {
  @Throttle({ auth: { limit: 5, ttl: 60000 } })
  @Get()
  all() {}

  @Throttle({ default: { limit: 5, ttl: 60000 } })
  @Post()
  create() {}
}
`,
      ),
    },
  },
  'keys, waits and blocks of its own': {
    version: '^6.4.0',
    files: {
      'app.module.ts': `import { Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler';

@Module({
  imports: [
    ThrottlerModule.forRoot({
      throttlers: [{ ttl: 1000, limit: 10, blockDuration: 5 * 60_000 }],
      getTracker: async (req) => req.user?.id ?? req.ip,
      generateKey: (context, tracker, name) => \`\${name}:\${tracker}\`,
      errorMessage: (_context, detail) => \`Wait \${detail.timeToBlockExpire} seconds\`,
      ipv6SubnetPrefix: 56,
    }),
  ],
  providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
})
export class AppModule {}
`,
      'search.controller.ts': controller(
        `import { Throttle } from '@nestjs/throttler';\n`,
        `@Controller('search')
export class SearchController {
  @Throttle({ default: { limit: (context) => (context.switchToHttp().getRequest().user ? 50 : 5), ttl: 60_000, blockDuration: 0 } })
  @Get()
  search() {}
}
`,
      ),
    },
  },
  'options in a constant': {
    version: '^6.4.0',
    files: {
      'throttler.options.ts': `import { ThrottlerModuleOptions } from '@nestjs/throttler';

export const throttlerOptions: ThrottlerModuleOptions = {
  throttlers: [
    // Bursts
    { name: 'default', ttl: 1_500, limit: 30 },
  ],
  errorMessage: 'Slow down',
};
`,
      'app.module.ts': `import { Module } from '@nestjs/common'
import { APP_GUARD } from '@nestjs/core'
import { ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler'
import { throttlerOptions } from './throttler.options'

@Module({
  imports: [ThrottlerModule.forRoot(throttlerOptions)],
  providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
})
export class AppModule {}
`,
    },
  },
  'a guard that decides by itself': {
    version: '^6.4.0',
    files: {
      'cloud-throttler.guard.ts': `import { ExecutionContext, Injectable } from '@nestjs/common';
import { ThrottlerGuard, ThrottlerRequest } from '@nestjs/throttler';

@Injectable()
export class CloudThrottlerGuard extends ThrottlerGuard {
  override async handleRequest(request: ThrottlerRequest) {
    if (request.throttler.name !== this.nameFor(request.context)) return true;
    return super.handleRequest(request);
  }

  private nameFor(context: ExecutionContext) {
    return context.getClass().name.startsWith('Auth') ? 'strict' : 'default';
  }
}
`,
      'options.factory.ts': `import { Injectable } from '@nestjs/common';
import { ThrottlerModuleOptions, ThrottlerOptionsFactory } from '@nestjs/throttler';

const limits = { default: { ttl: 60_000, limit: 120 }, strict: { ttl: 60_000, limit: 20 } };

@Injectable()
export class CustomOptionsFactory implements ThrottlerOptionsFactory {
  createThrottlerOptions() {
    const options: ThrottlerModuleOptions = {
      throttlers: Object.entries(limits).map(([name, config]) => ({ name, ...config })),
    };
    return options;
  }
}
`,
      'app.module.ts': `import { Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { ThrottlerModule } from '@nestjs/throttler';
import { CloudThrottlerGuard } from './cloud-throttler.guard';
import { CustomOptionsFactory } from './options.factory';

@Module({
  imports: [ThrottlerModule.forRootAsync({ useClass: CustomOptionsFactory })],
  providers: [{ provide: APP_GUARD, useClass: CloudThrottlerGuard }],
})
export class AppModule {}
`,
      'auth.controller.ts': controller(
        `import { SkipThrottle, Throttle } from '@nestjs/throttler';\n`,
        `@Controller('auth')
export class AuthController {
  @Throttle({ strict: { limit: 3, ttl: 60_000 } })
  @Post()
  login() {}

  @SkipThrottle({ default: true, strict: true })
  @Get()
  session() {}
}
`,
      ),
    },
  },
};
