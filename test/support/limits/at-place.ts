/** A message with its place: `limits[0].rate: expected ...` if it's about an option, else `limits[0]: unknown option ...`. */
export function atPlace(place: string, message: string): string {
  return `${place}${/^[\w.[\]]+: /.test(message) ? '.' : ': '}${message}`;
}
