import { asObject } from '../util/as-object.js';
import type { RequestReader } from './request-reader.js';

/** HTTP, on any framework: the request is what the framework made of it, so its `ip` is the one that the framework trusts. */
export const httpReader: RequestReader = {
  transport: 'http',

  read(context) {
    const args: readonly unknown[] = context.getArgs();
    return { request: asObject(args[0]), response: asObject(args[1]) };
  },

  call(context) {
    const args: readonly unknown[] = context.getArgs();
    return asObject(args[0]) ?? args;
  },
};
