import { ConfigurableModuleBuilder } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { RATE_LIMIT_GUARD_OPTION } from '../config/tokens.js';
import { RateLimitGuard } from './rate-limit.guard.js';
import type { RateLimitModuleExtras, ReturnedModuleOptions } from '../config/module-options.js';

export const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN, ASYNC_OPTIONS_TYPE } =
  new ConfigurableModuleBuilder<ReturnedModuleOptions>({ moduleName: 'RateLimit' })
    .setClassMethodName('forRoot')
    .setExtras<RateLimitModuleExtras>({ guard: true }, (definition, { guard }) => ({
      ...definition,
      providers: [
        ...(definition.providers ?? []),
        { provide: RATE_LIMIT_GUARD_OPTION, useValue: guard ?? true },
        ...(guard === false || guard === 'custom' ? [] : [{ provide: APP_GUARD, useExisting: RateLimitGuard }]),
      ],
    }))
    .build();
