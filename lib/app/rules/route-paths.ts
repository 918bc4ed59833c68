import { Injectable, RequestMethod, VERSION_NEUTRAL, VersioningType } from '@nestjs/common';
import { ApplicationConfig } from '@nestjs/core';
import { getOrMake } from '../../engine/util/objects.js';
import { type HandlerClass, Namespaces } from './namespaces.js';
import { joined, listed, METHOD, PATH, read, VERSION } from './route-names.js';

/** Builds the paths of routes from their declarations, for HTTP adapters whose requests don't contain their route. */
@Injectable()
export class RoutePaths {
  private readonly known = new WeakMap<object, Map<HandlerClass, string>>();

  constructor(
    private readonly config: ApplicationConfig,
    private readonly namespaces: Namespaces,
  ) {}

  /** The path that clients use to call a route. If there are several, or versions, all are listed. */
  of(type: HandlerClass, handler: object): string {
    const ofHandler = getOrMake(this.known, handler, () => new Map<HandlerClass, string>());
    return getOrMake(ofHandler, type, () => this.make(type, handler));
  }

  /** The versions of a route that clients don't send in its path, such as `2` or `1,2`; `undefined` if there are none. */
  versionsOf(type: HandlerClass, handler: object): string | undefined {
    const versioning = this.config.getVersioning();
    if (versioning === undefined || versioning.type === VersioningType.URI) return undefined;
    return this.versions(type, handler).map(String).join(',') || undefined;
  }

  private make(type: HandlerClass, handler: object): string {
    const prefixes = this.namespaces.prefixes(type);
    const path = joined(listed(prefixes), listed(read(PATH, type)), listed(read(PATH, handler)));
    const versioned = joined(this.version(type, handler), path);
    return this.isExcluded(path, handler) ? versioned : joined(this.config.getGlobalPrefix(), versioned);
  }

  /** The version part of the path; empty unless versions are part of paths. */
  private version(type: object, handler: object): string {
    const versioning = this.config.getVersioning();
    if (versioning?.type !== VersioningType.URI) return '';
    const prefix = versioning.prefix === undefined ? 'v' : versioning.prefix || '';
    return this.versions(type, handler)
      .map((each) => prefix + String(each))
      .join(',');
  }

  private versions(type: object, handler: object): unknown[] {
    const version = read(VERSION, handler) ?? read(VERSION, type) ?? this.config.getVersioning()?.defaultVersion;
    const versions: unknown[] = Array.isArray(version) ? version : [version];
    return versions.filter((each) => each !== undefined && each !== VERSION_NEUTRAL);
  }

  /** Returns true if a route is excluded from the global prefix. */
  private isExcluded(path: string, handler: object): boolean {
    const { exclude = [] } = this.config.getGlobalPrefixOptions();
    const method = read(METHOD, handler);
    return exclude.some(
      ({ requestMethod, pathRegex }) =>
        (requestMethod === RequestMethod.ALL || requestMethod === method) && pathRegex.test(path),
    );
  }
}
