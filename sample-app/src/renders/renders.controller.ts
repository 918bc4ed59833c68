import { Controller, Get } from '@nestjs/common';
import { RateLimit } from 'nestjs-sluice';

@Controller('renders')
export class RendersController {
  /** One graphics card for all tenants: whoever is alone has all of it, of several each gets a part, acme three times that of others. */
  @Get()
  @RateLimit({
    name: 'renders',
    algo: 'token-bucket',
    rate: 12,
    interval: '1h',
    key: 'global',
    share: { by: 'header:x-tenant', weight: { acme: 3 }, floor: 0.05 },
  })
  render() {
    return { file: 'frame.png' };
  }
}
