// A module as it is built: decorators are called, since nothing compiles this file.
import 'reflect-metadata';
import { Controller, Get, Module } from '@nestjs/common';
import { RateLimit, RateLimitModule, SkipRateLimit } from 'nestjs-sluice';

class OrdersController {
  list() {
    return [];
  }
}
const list = Object.getOwnPropertyDescriptor(OrdersController.prototype, 'list');
Get()(OrdersController.prototype, 'list', list);
RateLimit('api', { algo: 'gcra', rate: 3, interval: '1s', key: 'user' })(OrdersController.prototype, 'list', list);
SkipRateLimit('hourly')(OrdersController.prototype, 'list', list);
Controller('orders')(OrdersController);

export class ShopModule {
  onModuleInit() {
    // What an app leaves open does not keep the program waiting.
    if (process.env.SHOP_STAYS_OPEN !== undefined) setInterval(() => undefined, 1000);
  }
}
Module({
  imports: [
    RateLimitModule.forRoot({
      ...(process.env.SHOP_REDIS === undefined ? {} : { redis: process.env.SHOP_REDIS }),
      prefix: process.env.SHOP_PREFIX ?? 'shop',
      timeout: '5s',
      limits: [{ name: 'hourly', algo: 'sliding-window', rate: 100, interval: '1h' }],
      define: { api: { algo: 'fixed-window', rate: 10, interval: '1h' } },
    }),
  ],
  controllers: [OrdersController],
})(ShopModule);

export class EmptyModule {}
Module({})(EmptyModule);

export class WrongModule {}
Module({ imports: [RateLimitModule.forRoot({ limits: [{ algo: 'gcra', rate: 0, interval: '1s' }] })] })(WrongModule);
