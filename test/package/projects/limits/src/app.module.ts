import { Module } from '@nestjs/common';
import { RateLimitModule } from 'nestjs-sluice';
import { AppController, LoginController } from './app.controller.js';
import { AppService } from './app.service.js';

@Module({
  imports: [RateLimitModule.forRoot({ define: { login: { algo: 'sliding-log', rate: 5, interval: '15m' } } })],
  controllers: [AppController, LoginController],
  providers: [AppService],
})
export class AppModule {}
