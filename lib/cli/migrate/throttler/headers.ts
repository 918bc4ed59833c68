import type { Source } from '../source.js';

/** A formatter for limits with names, put into the file. Returns its name. */
export function headersByName(source: Source): string {
  source.own('type HeaderFormatter');
  source.helpers.set(
    'headersByName',
    '/** X-RateLimit headers of each limit, with its name unless it is that of the throttler without one. */\n' +
      'const headersByName: HeaderFormatter = ({ decisions }) =>\n' +
      '  Object.fromEntries(\n' +
      '    decisions.flatMap(({ allowed, limit, quota, remaining, resetAfterMs, retryAfterMs }) => {\n' +
      "      const suffix = limit === 'default' ? '' : `-${limit}`;\n" +
      "      if (!allowed) return suffix === '' ? [] : [[`Retry-After${suffix}`, String(Math.ceil(retryAfterMs / 1000))]];\n" +
      '      return [\n' +
      '        [`X-RateLimit-Limit${suffix}`, String(quota)],\n' +
      '        [`X-RateLimit-Remaining${suffix}`, String(remaining)],\n' +
      '        [`X-RateLimit-Reset${suffix}`, String(Math.ceil(resetAfterMs / 1000))],\n' +
      '      ];\n' +
      '    }),\n' +
      '  );',
  );
  return 'headersByName';
}
