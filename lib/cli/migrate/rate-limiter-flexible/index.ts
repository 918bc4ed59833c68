import type { Project } from '../project.js';
import type { MigrationReport } from '../report.js';
import type { Source } from '../source.js';

export function migrateRateLimiterFlexible(_project: Project, _report: MigrationReport): readonly Source[] {
  return [];
}
