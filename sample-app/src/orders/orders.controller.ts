import { Controller, type ExecutionContext, Get } from '@nestjs/common';
import { type Priority, RateLimit } from 'nestjs-sluice';

/** Who is about to pay goes before who looks around, and before a crawler. */
function priorityOf(context: ExecutionContext): Priority {
  const { query, headers } = context
    .switchToHttp()
    .getRequest<{ query: { paying?: unknown }; headers: { 'user-agent'?: string } }>();
  if (query.paying !== undefined) return 'critical';
  return headers['user-agent']?.includes('bot') === true ? 'sheddable' : 'default';
}

@Controller('orders')
export class OrdersController {
  /** The last 2 of 8 requests are for those who pay; of the other 6, a crawler may take 4. */
  @Get()
  @RateLimit({
    name: 'orders',
    algo: 'sliding-window',
    rate: 8,
    interval: '1m',
    key: 'global',
    priority: priorityOf,
    reserveFor: { critical: 0.25, default: 0.25 },
  })
  list() {
    return { orders: [] };
  }
}
