/**
 * Hooks of Node's loader, which run in a thread of their own: they find and compile TypeScript. All specs of a process share the
 * packages and the library. Each has instances of its own of what is in test/: a query in the URL tells for which spec a module is.
 */
import { existsSync } from 'node:fs';
import { compiled } from './compiled.mjs';
import { withDeclaredKeys } from './declared-keys.mjs';

const ROOT = new URL('../../../', import.meta.url).href;
const TESTS = new URL('test/', ROOT).href;
const PACKAGES = new URL('node_modules/', ROOT).href;
const GLOBALS = new URL('jest-globals.mjs', import.meta.url).href;

export function resolve(specifier, context, next) {
  const { parentURL } = context;
  if (specifier === '@jest/globals') return found(GLOBALS, parentURL);
  if (!specifier.startsWith('.') || !isOwn(parentURL)) return next(specifier, context);
  const url = new URL(specifier.replace(/\.js$/, '.ts'), parentURL);
  return url.pathname.endsWith('.ts') && existsSync(url) ? found(url.href, parentURL) : next(specifier, context);
}

export async function load(url, context, next) {
  const path = new URL(url).pathname;
  if (!path.endsWith('.ts') || !isOwn(url)) return next(url, context);
  const source = await compiled(url);
  return { format: 'module', source: withDeclaredKeys(path, source), shortCircuit: true };
}

function isOwn(url) {
  return url !== undefined && url.startsWith(ROOT) && !url.startsWith(PACKAGES);
}

function found(url, parentURL) {
  const { search, searchParams } = new URL(parentURL);
  const isShared = !url.startsWith(TESTS) && searchParams.get('library') !== 'own';
  return { url: isShared ? url : `${url}${search}`, format: 'module', shortCircuit: true };
}
