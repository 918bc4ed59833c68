import { text } from '../options/kinds.js';

/** Anything that a String of a structured field can contain, since the name goes into the headers. */
export const limitName = text('1 to 128 printable ASCII characters', '^[ -~]{1,128}$');
