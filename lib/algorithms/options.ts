export * from '../options/check-options.js';
export * from '../options/values.js';
