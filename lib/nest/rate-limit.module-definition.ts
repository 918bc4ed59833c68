import { ConfigurableModuleBuilder } from '@nestjs/common';
import { RATE_LIMIT_GUARD_OPTION } from '../app/config/tokens.js';
import type { RateLimitModuleExtras, ReturnedModuleOptions } from '../app/config/module-options.js';

export const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN, ASYNC_OPTIONS_TYPE } =
  new ConfigurableModuleBuilder<ReturnedModuleOptions>({ moduleName: 'RateLimit' })
    .setClassMethodName('forRoot')
    .setExtras<RateLimitModuleExtras>({ guard: true }, (definition, { guard }) => ({
      ...definition,
      providers: [...(definition.providers ?? []), { provide: RATE_LIMIT_GUARD_OPTION, useValue: guard ?? true }],
    }))
    .build();
