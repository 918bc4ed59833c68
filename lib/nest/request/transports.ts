import { type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { RateLimitConfigError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import { provided } from '../../engine/util/instances.js';
import { RATE_LIMIT_SETTINGS } from '../../app/config/tokens.js';
import { type RateLimitSettings } from '../../app/config/settings.js';
import { graphqlReader } from '../../app/transports/graphql.reader.js';
import { httpReader, unreadReader } from '../../app/transports/read-request.js';
import type { RequestReader } from '../../app/transports/request-reader.js';
import { rpcReader } from '../../app/transports/rpc.reader.js';
import { wsReader } from '../../app/transports/ws.reader.js';
import { wrongOption } from '../../engine/options/check-options.js';

const EXPECTED = 'a list of RequestReaders, each an object or an injectable class with transport and read';

/** Finds the reader of each transport. */
@Injectable()
export class Transports {
  private readonly readers = new Map(
    [httpReader, graphqlReader, wsReader, rpcReader].map((reader) => [reader.transport, reader]),
  );

  constructor(
    @Inject(RATE_LIMIT_SETTINGS) private readonly settings: RateLimitSettings,
    private readonly modules: ModuleRef,
  ) {}

  /** Reads the option `readers`. Throws `RateLimitConfigError` for invalid readers. */
  async open(): Promise<void> {
    const own = new Set<string>();
    for (const given of this.settings.options.readers ?? []) {
      const reader = typeof given === 'function' ? await provided(this.modules, given) : given;
      if (!isReader(reader)) throw wrongOption('RateLimitModule', 'readers', given, EXPECTED);
      const { transport } = reader;
      if (own.has(transport)) throw new RateLimitConfigError(messages.readTwice(transport));
      own.add(transport);
      this.readers.set(transport, reader);
    }
  }

  /** The reader of a call; if its transport has none, one that returns no request and no response. */
  of(context: ExecutionContext): RequestReader {
    return this.readers.get(context.getType<string>()) ?? unreadReader;
  }
}

function isReader(value: unknown): value is RequestReader {
  const { transport, read, call, refuse } = (value ?? {}) as { [part in keyof RequestReader]?: unknown };
  const optional = [call, refuse].every((part) => part === undefined || typeof part === 'function');
  return typeof transport === 'string' && transport !== '' && typeof read === 'function' && optional;
}
