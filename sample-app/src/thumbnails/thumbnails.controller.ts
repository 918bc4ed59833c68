import { Controller, Get, Param, ParseIntPipe } from '@nestjs/common';
import { RateLimit, SkipRateLimit } from 'nestjs-sluice';

@Controller('thumbnails')
export class ThumbnailsController {
  /**
   * The renderer makes 2 pictures a second, for everyone together. The guard holds a request until its turn and refuses it
   * if 3 wait already. A page asks for many pictures at once, so the app's `burst` limit does not hold here.
   */
  @Get(':id')
  @SkipRateLimit('burst')
  @RateLimit({ name: 'renderer', algo: 'leaky-bucket', rate: 2, interval: '1s', queue: 3, key: 'global' })
  thumbnail(@Param('id', ParseIntPipe) id: number) {
    return { id, width: 160, height: 90, renderedAt: new Date().toISOString() };
  }
}
