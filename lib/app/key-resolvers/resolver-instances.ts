import type { ModuleRef } from '@nestjs/core';
import { RateLimitConfigError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import { Instances, withMethod } from '../../engine/util/instances.js';
import type { KeyResolver } from '../../engine/limits/identity.js';

/** The instances of the `key` classes. */
export class ResolverInstances extends Instances<KeyResolver> {
  /** `forms`: the forms of a `key`, for messages. */
  constructor(modules: ModuleRef, forms: string) {
    super(
      modules,
      withMethod(
        'resolve',
        (type, { location, option }) =>
          new RateLimitConfigError(messages.lacksMethod(location, option, type, 'resolve', forms)),
      ),
    );
  }
}
