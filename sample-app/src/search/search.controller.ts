import { Controller, Get, Query } from '@nestjs/common';
import { RateLimit } from 'nestjs-sluice';

const BOOKS = ['Notes on the Analytical Engine', 'Nested Gardens', 'A Sluice and its Gates', 'The Honest Nest'];

@Controller('search')
export class SearchController {
  /** `search` is defined in the module: one every 6 seconds in the long run, and 5 at once after a pause. */
  @Get()
  @RateLimit('search')
  search(@Query('q') query = '') {
    return { query, results: BOOKS.filter((title) => title.toLowerCase().includes(query.toLowerCase())) };
  }
}
