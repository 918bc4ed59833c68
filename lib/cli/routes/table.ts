import { counted } from '../../engine/errors/wording.js';
import { columns, printable } from '../../engine/util/printable.js';
import type { LocatedRoute } from './locate.js';

/** The routes as text: one line each, with its limits below. */
export function tableOf(routes: readonly LocatedRoute[]): string {
  const rows = columns(routes.map(rowOf), [0, 1, 2]);
  const lines = rows.flatMap((row, index) => [row, ...limitsOf(routes[index]!)]);
  const unlimited = routes.filter((route) => route.unlimited).length;
  const summary = `${counted(routes.length, 'route')}, ${unlimited} without a limit`;
  return `${[...lines, ...(lines.length > 0 ? [''] : []), summary].join('\n')}\n`;
}

/** The place of an unlimited route. */
export function placeOf({ route, controller, handler, file, line }: LocatedRoute): string {
  const place = file === undefined ? '' : `${file}${line === undefined ? '' : `:${line}`}: `;
  return printable(`${place}${route} (${controller}.${handler}) has no limit`, Infinity);
}

function rowOf({ kind, route, controller, handler, unlimited }: LocatedRoute): string[] {
  return [kind, printable(route, 100), `${controller}.${handler}${unlimited ? '  NO LIMIT' : ''}`];
}

function limitsOf({ limits, functions, skips, because }: LocatedRoute): string[] {
  const texts = [
    ...limits.map(({ name, key, phase, mode, declared, definition }) =>
      [
        `${name}: key ${key}`,
        phase === undefined ? undefined : `phase ${phase}`,
        mode === undefined || mode === 'enforce' ? undefined : `mode ${mode}`,
        definition === undefined ? declared : `${declared}, ${definition}`,
      ]
        .filter((part) => part !== undefined)
        .join('; '),
    ),
    ...functions.map((place) => `limits by the request: ${place}`),
    ...(skips === undefined ? [] : [because === undefined ? skips : `${skips}: ${because}`]),
  ];
  return texts.map((text) => `${' '.repeat(9)}${printable(text, Infinity)}`);
}
