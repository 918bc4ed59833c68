import { Injectable, type Type } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages/general.js';
import {
  REFUSAL_WANTS,
  type RefusalAnswer,
  type RefusalFunction,
  type RefusalOption,
  type RefusalResolver,
} from '../http/refusal-answer.js';
import { Instances, isClassWith } from '../util/instances.js';

/** The instances of the classes that make responses to refused requests. */
@Injectable()
export class RefusalResolvers {
  private readonly instances: Instances<RefusalResolver>;

  constructor(modules: ModuleRef) {
    this.instances = new Instances(
      modules,
      (instance) => typeof instance.resolve === 'function',
      (type) => new RateLimitConfigError(messages.wrongOption('RateLimitModule', 'answer', type, REFUSAL_WANTS)),
    );
  }

  /** Makes an option ready to be called. */
  bind(option: RefusalOption | undefined): RefusalAnswer['resolve'] {
    if (option === undefined) return undefined;
    if (!isResolverClass(option)) return option;
    this.instances.need(option);
    return (...asked: Parameters<RefusalFunction>) => {
      const resolver = this.instances.of(option);
      return resolver instanceof Promise
        ? resolver.then((instance) => instance.resolve(...asked))
        : resolver.resolve(...asked);
    };
  }

  /** Resolves when all classes needed so far have an instance. */
  ready(): Promise<void> {
    return this.instances.ready();
  }
}

function isResolverClass(option: RefusalOption): option is Type<RefusalResolver> {
  return isClassWith('resolve', option);
}
