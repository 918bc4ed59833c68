import { Controller, type ExecutionContext, Get, Req, UseGuards } from '@nestjs/common';
import { defineLimit, type LimitDefinition, RateLimit } from 'nestjs-sluice';
import { DemoAuthGuard, type DemoRequest } from '../auth/demo-auth.guard.js';

const FREE = defineLimit({ name: 'forecast', algo: 'token-bucket', rate: 3, interval: '1m', key: 'user' });

/** What each plan allows; a partner is not limited here. */
const PLANS: ReadonlyMap<string | undefined, LimitDefinition | null> = new Map([
  ['free', FREE],
  ['pro', defineLimit({ name: 'forecast', algo: 'token-bucket', rate: 60, interval: '1m', burst: 20, key: 'user' })],
  ['partner', null],
]);

/** The route has a guard that finds the user, so this is asked after it. An unknown plan gets what `free` gets. */
function byPlan(context: ExecutionContext): LimitDefinition | null {
  const limit = PLANS.get(context.switchToHttp().getRequest<DemoRequest>().user?.plan);
  return limit === undefined ? FREE : limit;
}

@Controller('forecast')
@UseGuards(DemoAuthGuard)
export class ForecastController {
  @Get()
  @RateLimit(byPlan)
  forecast(@Req() { user }: DemoRequest) {
    return { plan: user?.plan, tomorrow: { sky: 'light rain', waterLevelCm: 142 } };
  }
}
