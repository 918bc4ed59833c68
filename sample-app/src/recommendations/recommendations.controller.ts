import { Controller, Get } from '@nestjs/common';
import { RateLimit } from 'nestjs-sluice';

@Controller('recommendations')
export class RecommendationsController {
  /** The model behind it fills its caches first: a cold limit allows a quarter of 6 a minute, and all of it after 2 minutes of use. */
  @Get()
  @RateLimit({
    name: 'recommendations',
    algo: 'token-bucket',
    rate: 6,
    interval: '1m',
    key: 'global',
    warmUp: { for: '2m', from: 0.25 },
  })
  list() {
    return { recommended: ['a sluice', 'a gate'] };
  }
}
