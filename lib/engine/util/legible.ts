/**
 * Characters that hide, or that change how the text around them reads: control characters, line separators, zero-width spaces and the marks
 * that set the direction of writing. Joiners are allowed, since words and emoji need them.
 */
const MISLEADING = /[\p{Cc}\u061C\u200B\u200E\u200F\u2028-\u202E\u2066-\u2069\uFEFF]/gu;

/** A text that clients choose, such as an identity, in a form that is safe to show to people: misleading characters are escaped. */
export function legible(text: string): string {
  return text.replaceAll(MISLEADING, (each) => `\\u{${each.codePointAt(0)!.toString(16)}}`);
}
