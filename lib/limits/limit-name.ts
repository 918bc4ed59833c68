import { text } from '../options/kinds.js';

/** What a structured field's String can hold, since the name goes into the headers. */
export const limitName = text('1 to 128 printable ASCII characters', '^[ -~]{1,128}$');
