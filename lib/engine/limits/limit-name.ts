import { text } from '../options/kinds.js';

/** The characters that a String of a structured field can contain, since the name is sent in headers. */
export const limitName = text('1 to 128 printable ASCII characters', '^[ -~]{1,128}$');
