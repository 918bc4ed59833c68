import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { moduleLogger } from '../engine/errors/logger.js';
import { messages } from '../engine/errors/messages/general.js';
import { StartUpCheck } from '../app/rules/start-up-check.js';
import { trustsAnyone } from '../app/transports/framework-address.js';

/** Warns at start-up if limits count by addresses that any client may choose. */
@Injectable()
export class TrustedProxies implements OnApplicationBootstrap {
  constructor(
    private readonly host: HttpAdapterHost,
    private readonly startUp: StartUpCheck,
  ) {}

  /** Called by Nest once the app is set up. */
  onApplicationBootstrap(): void {
    const { byAddress } = this.startUp;
    if (byAddress !== undefined && trustsAnyone(this.host.httpAdapter)) {
      moduleLogger.warn(messages.trustsAnyone(byAddress));
    }
  }
}
