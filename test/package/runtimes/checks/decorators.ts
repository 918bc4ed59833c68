/** An app in TypeScript, for runtimes that compile it: classes are injected by the types that decorators record. */
import 'reflect-metadata';
import assert from 'node:assert/strict';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Controller, Get, Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { type CheckResult, LimiterService, RateLimit, RateLimitDecision, RateLimitModule } from 'nestjs-sluice';

@Injectable()
class Mailer {
  constructor(private readonly limiters: LimiterService) {}

  async send() {
    const limiter = this.limiters.for({ name: 'mails', algo: 'gcra', rate: 1, interval: '1h' });
    return (await limiter.consume('someone')).allowed;
  }
}

@Controller('reports')
@RateLimit({ name: 'controller', algo: 'fixed-window', rate: 10, interval: '1h' })
class ReportsController {
  constructor(private readonly mailer: Mailer) {}

  @Get()
  @RateLimit({ name: 'route', algo: 'token-bucket', rate: 2, interval: '1h' })
  async list(@RateLimitDecision() result: CheckResult) {
    return { sent: await this.mailer.send(), limits: result.decisions.map(({ limit }) => limit) };
  }
}

@Module({ imports: [RateLimitModule.forRoot()], controllers: [ReportsController], providers: [Mailer] })
class AppModule {}

const app = await NestFactory.create(AppModule, { logger: false, abortOnError: false });
await app.listen(0, '127.0.0.1');
const { port } = (app.getHttpServer() as Server).address() as AddressInfo;
const responses: unknown[] = [];
for (let request = 0; request < 3; request++) {
  const response = await fetch(`http://127.0.0.1:${port}/reports`, { headers: { connection: 'close' } });
  responses.push(response.status === 200 ? await response.json() : response.status);
}
await app.close();

const limits = ['controller', 'route'];
assert.deepEqual(responses, [{ sent: true, limits }, { sent: false, limits }, 429]);
