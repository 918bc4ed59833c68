import 'reflect-metadata';

const INJECTED = 'nestjs-sluice:injected';
/** Nest shows the token in its error if no module provides it. */
const PREFIX = 'the Limiter of RateLimitModule.forRoot(), to import in the root module, named ';

/** The names of all tokens created so far. They are kept per process, which may run several apps. */
const recorded = new Set<string>();
const listeners: ((name: string) => void)[] = [];

/** The injection token of a defined limit's `Limiter`: for `inject` of a factory, for `app.get`, and to override it in tests. */
export function getLimiterToken(name: string): string {
  if (!recorded.has(name)) {
    recorded.add(name);
    for (const listener of listeners) listener(name);
  }
  return `${PREFIX}${name}`;
}

/** Calls the listener with every name, including those recorded before. */
export function onLimiterRecorded(listener: (name: string) => void): void {
  listeners.push(listener);
  for (const name of recorded) listener(name);
}

/** The names of the limiters that a provider injects: through decorators of its class, or through `inject` of its factory. */
export function limitersOf(type: object | null | undefined, inject: readonly unknown[] | null | undefined): string[] {
  const decorated = typeof type === 'function' ? (Reflect.getMetadata(INJECTED, type) as string[] | undefined) : [];
  const tokens = (inject ?? []).map((each) =>
    typeof each === 'object' && each !== null && 'token' in each ? each.token : each,
  );
  const injected = tokens.filter((token) => typeof token === 'string' && token.startsWith(PREFIX)) as string[];
  return [...(decorated ?? []), ...injected.map((token) => token.slice(PREFIX.length))];
}

/** Records that a class injects the limiter of this name. */
export function recordInjection(host: object, name: string): void {
  const names = (Reflect.getMetadata(INJECTED, host) as string[] | undefined) ?? [];
  Reflect.defineMetadata(INJECTED, [...names, name], host);
}
