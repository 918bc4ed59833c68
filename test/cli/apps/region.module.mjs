// An app in a region, as it is built: decorators are called, since nothing compiles this file.
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { RateLimitModule } from 'nestjs-sluice';

const [prefix, redis, home] = JSON.parse(process.env.REGION_TEST);

export class RegionModule {}
Module({
  imports: [
    RateLimitModule.forRoot({
      redis,
      prefix,
      regions: { name: 'eu', home },
      define: { plan: { algo: 'fixed-window', rate: 10, interval: '1h', scope: 'world' } },
    }),
  ],
})(RegionModule);
