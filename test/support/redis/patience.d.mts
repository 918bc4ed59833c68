import type { RateLimitModuleOptions } from '../../../lib/index.js';

export const PATIENCE: '5m';
export const PATIENCE_MS: number;
export function patient<T extends RateLimitModuleOptions>(options: T): T;
