import { Controller, Get, Post } from '@nestjs/common';
import { InjectLimiter, Limiter, LimiterService, RateLimit } from 'nestjs-sluice';
import { AppService } from './app.service.js';

@Controller()
export class AppController {
  constructor(private readonly appService: AppService) {}

  @Get()
  @RateLimit({ name: 'hello', algo: 'fixed-window', rate: 2, interval: '1h' })
  getHello(): string {
    return this.appService.getHello();
  }
}

@Controller('login')
export class LoginController {
  constructor(
    @InjectLimiter('login') readonly logins: Limiter,
    readonly limiters: LimiterService,
  ) {}

  @Post()
  @RateLimit('login')
  login(): boolean {
    return true;
  }
}
