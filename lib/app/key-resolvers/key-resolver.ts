import type { ExecutionContext } from '@nestjs/common';
import type { ResolvedKey } from '../../engine/limits/limit-key.js';
import type { RequestParts } from '../transports/request-reader.js';

/** A key resolver that has been bound. */
export type Identify = (context: ExecutionContext, parts: RequestParts) => ResolvedKey | Promise<ResolvedKey>;
