/** What `npm run build:playground` makes: it defines the element `sluice-comparison`. */
declare module '*/playground/dist/sluice-comparison.js';
