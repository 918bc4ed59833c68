import { Controller, Get, NotFoundException, Param, ParseIntPipe } from '@nestjs/common';
import { RateLimit } from 'nestjs-sluice';

const REPORTS = [
  { id: 1, title: 'Water levels in October' },
  { id: 2, title: 'Gate openings by hour' },
];

/** Two scales, shared by both routes. A request that one of them refuses is charged to neither. */
@Controller('reports')
@RateLimit(
  { name: 'reports-minute', algo: 'sliding-window', rate: 10, interval: '1m' },
  { name: 'reports-hour', algo: 'sliding-window', rate: 100, interval: '1h' },
)
export class ReportsController {
  @Get()
  list() {
    return { reports: REPORTS };
  }

  @Get(':id')
  one(@Param('id', ParseIntPipe) id: number) {
    const report = REPORTS.find((each) => each.id === id);
    if (report === undefined) throw new NotFoundException(`There is no report ${id}`);
    return report;
  }
}
