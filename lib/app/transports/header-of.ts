/** The headers of a Node request, by name in lower case. Some HTTP adapters provide the Web's `Headers` instead. */
type GivenHeaders = Readonly<Record<string, string | string[] | undefined>> & { readonly get?: unknown };

/** The value of a request header, by its name in lower case. */
export function headerOf(headers: GivenHeaders | undefined, name: string): string | undefined {
  const value: unknown = headers?.[name];
  if (typeof value === 'string') return value;
  if (Array.isArray(value)) return value.join(', ');
  return isOfWeb(headers) ? (headers.get(name) ?? undefined) : undefined;
}

function isOfWeb(headers: unknown): headers is Headers {
  return typeof (headers as Headers | null | undefined)?.get === 'function';
}
