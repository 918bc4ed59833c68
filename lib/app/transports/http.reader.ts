import { asObject } from '../../engine/util/objects.js';
import type { RequestReader } from './request-reader.js';

/** HTTP with any framework. `ip` comes from the framework's own request, so it respects the proxies that the framework trusts. */
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
