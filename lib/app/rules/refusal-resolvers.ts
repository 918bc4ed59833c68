import { Injectable, type Type } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { RateLimitConfigError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import {
  REFUSAL_EXPECTED,
  type RefusalAnswer,
  type RefusalFunction,
  type RefusalOption,
  type RefusalResolver,
} from '../http/refusal-answer.js';
import { Instances, isClassWith, type OptionPlace, withMethod } from '../../engine/util/instances.js';

/** The instances of the classes that create responses to rejected requests. */
@Injectable()
export class RefusalResolvers {
  private readonly instances: Instances<RefusalResolver>;

  constructor(modules: ModuleRef) {
    this.instances = new Instances(modules, withMethod('resolve', lacksResolve));
  }

  /** Turns an `answer` option into a function. */
  bind(answer: RefusalOption | undefined, location: string): RefusalAnswer['resolve'] {
    if (answer === undefined) return undefined;
    if (!isResolverClass(answer)) return answer;
    this.instances.need(answer, { location, option: 'answer' });
    return (...asked: Parameters<RefusalFunction>) => {
      const resolver = this.instances.of(answer);
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

function isResolverClass(answer: RefusalOption): answer is Type<RefusalResolver> {
  return isClassWith('resolve', answer);
}

function lacksResolve(type: Type, { location, option }: OptionPlace): RateLimitConfigError {
  return new RateLimitConfigError(messages.lacksMethod(location, option, type, 'resolve', REFUSAL_EXPECTED));
}
