import { Controller, type ExecutionContext, Get, Req, UseGuards } from '@nestjs/common';
import { type LimitDefinition, RateLimit } from 'nestjs-sluice';
import { DemoAuthGuard, type DemoRequest } from '../auth/demo-auth.guard.js';

/** What each plan allows; a partner is not limited here. */
const PLANS: Readonly<Record<string, LimitDefinition | null>> = {
  free: { name: 'forecast', algo: 'token-bucket', rate: 3, interval: '1m', key: 'user' },
  pro: { name: 'forecast', algo: 'token-bucket', rate: 60, interval: '1m', burst: 20, key: 'user' },
  partner: null,
};

/** The route has a guard that finds the user, so this is asked after it. An unknown plan gets what `free` gets. */
function byPlan(context: ExecutionContext): LimitDefinition | null | undefined {
  const plan = context.switchToHttp().getRequest<DemoRequest>().user?.plan ?? 'free';
  return Object.hasOwn(PLANS, plan) ? PLANS[plan] : PLANS['free'];
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
