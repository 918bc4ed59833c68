/**
 * A `fetch` that waits before the server would reject a call. Needs nothing of Nest, Redis or Node, and runs in browsers.
 * @module nestjs-sluice/client
 */
export { paced, type PacedOptions, PacedError } from './paced.js';
