import { Controller, Get, Headers } from '@nestjs/common';
import { RateLimit } from 'nestjs-sluice';

@Controller('boards')
export class BoardsController {
  /**
   * Asks the user's limit and the team's, in one call. Each user of a team has 4 a minute, and borrows up to 2 more while the team has
   * units that it lends: half of its 20.
   */
  @Get()
  @RateLimit('board-user')
  list(@Headers('x-team') team: string) {
    return { team, boards: ['roadmap', 'bugs'] };
  }
}
