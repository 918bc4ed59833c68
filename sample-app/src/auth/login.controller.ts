import { Body, Controller, HttpCode, Post, UnauthorizedException } from '@nestjs/common';
import { RateLimit } from 'nestjs-sluice';

interface Credentials {
  user?: unknown;
  password?: unknown;
}

@Controller('login')
export class LoginController {
  /** `login` is defined in the module: 5 failed attempts in any 15 minutes, and 15 minutes of rest for who tries more. */
  @Post()
  @HttpCode(200)
  @RateLimit('login')
  login(@Body() credentials: Credentials | undefined) {
    if (credentials?.user !== 'ada' || credentials.password !== 'analytical-engine') {
      throw new UnauthorizedException('Wrong user or password');
    }
    return { user: 'ada', token: 'a-demo-token' };
  }
}
