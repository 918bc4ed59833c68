import { dirname, relative, sep } from 'node:path';
import type { Source } from './source.js';

/** Imports a name of another file of the project. */
export function importOf(source: Source, from: Source, name: string): void {
  if (source.path === from.path || source.imported.has(name)) return;
  const path = relative(dirname(source.path), from.path)
    .replaceAll(sep, '/')
    .replace(/\.[cm]?tsx?$/, '');
  const hasExtensions = /from ['"]\.{1,2}\/[^'"]*\.js['"]/.test(source.text);
  source.want(`${path.startsWith('.') ? path : `./${path}`}${hasExtensions ? '.js' : ''}`, name);
}
