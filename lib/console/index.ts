/**
 * A page inside the app that shows and changes its limits.
 * @module nestjs-sluice/console
 */
export type { AlertFormat, ConsoleAlert, ConsoleAlerts } from './alerts/alert-options.js';
export type { IncidentKind } from './api/incidents.js';
export type {
  ConsoleGuard,
  RateLimitConsoleAsyncOptions,
  RateLimitConsoleOptions,
  RateLimitConsoleRoutes,
  RateLimitConsoleSettings,
} from './console-options.js';
export { RateLimitConsoleModule } from './rate-limit-console.module.js';
