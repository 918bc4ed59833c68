/**
 * A page that shows and changes limits, inside the app.
 * @module nestjs-sluice/console
 */
export type {
  ConsoleGuard,
  RateLimitConsoleAsyncOptions,
  RateLimitConsoleOptions,
  RateLimitConsoleRoutes,
  RateLimitConsoleSettings,
} from './console-options.js';
export { RateLimitConsoleModule } from './rate-limit-console.module.js';
