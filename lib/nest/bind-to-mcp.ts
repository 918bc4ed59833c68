import type { ModulesContainer } from '@nestjs/core';
import { MetadataScanner } from '@nestjs/core';
import { boundGuards, GUARDS, isOwnGuard } from '../rules/bound-guards.js';
import type { RateLimitGuard } from './rate-limit.guard.js';

/** The metadata key under which handlers of messages keep what a transport adds. */
const EXTRAS = 'microservices:pattern_extras';

/**
 * Binds the guard to controllers whose methods are tools, prompts or resources of `@rekog/mcp-nest`. Its strategy is connected to
 * an app as a microservice, and global guards reach those only with `inheritAppConfig: true`: without it, no limit would hold.
 *
 * @param guard `undefined` if the app binds it itself
 */
export function bindToMcp(modules: ModulesContainer, guard: RateLimitGuard | undefined): void {
  const scanner = new MetadataScanner();
  for (const { controllers } of modules.values()) {
    for (const { metatype } of controllers.values()) {
      if (typeof metatype !== 'function') continue;
      const prototype = metatype.prototype as Record<string, object>;
      const isMcp = scanner.getAllMethodNames(prototype).some((name) => hasMcpType(prototype[name]!));
      if (!isMcp) continue;
      // Another app of the process may have bound its own: tests start many.
      const bound = boundGuards(metatype);
      const others = bound.filter((each) => typeof each === 'function' || !isOwnGuard(each));
      const binds = guard !== undefined && !others.some(isOwnGuard);
      if (binds || others.length < bound.length) {
        Reflect.defineMetadata(GUARDS, binds ? [guard, ...others] : others, metatype);
      }
    }
  }
}

function hasMcpType(handler: object): boolean {
  const extras: unknown = Reflect.getMetadata(EXTRAS, handler);
  return typeof extras === 'object' && extras !== null && 'mcpType' in extras;
}
