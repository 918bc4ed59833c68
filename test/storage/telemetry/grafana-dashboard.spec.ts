import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { PACKAGE_FOLDER } from '../../support/processes/npm.js';
import { readQuery, selects, type Series, seriesOf } from './promql.js';
import { scrapedText } from './scraped-app.js';

interface Panel {
  id: number;
  type: string;
  title: string;
  description?: string;
  gridPos: { x: number; y: number; w: number; h: number };
  datasource?: { type: string; uid: string };
  targets?: { refId: string; expr: string; legendFormat: string; datasource: { uid: string } }[];
  fieldConfig?: { defaults: { unit: string } };
}

interface Dashboard {
  uid: string;
  panels: Panel[];
  templating: { list: { name: string; type: string; definition?: string; query?: unknown; multi?: boolean }[] };
}

interface Rule {
  alert: string;
  expr: string;
  for: string;
  labels: { severity: string };
  annotations: { summary: string; description: string };
}

const dashboard = JSON.parse(read('docs/grafana-dashboard.json')) as Dashboard;
const rules = (parse(read('docs/prometheus-alerts.yaml')) as { groups: { rules: Rule[] }[] }).groups.flatMap(
  (group) => group.rules,
);
const panels = dashboard.panels.filter(({ type }) => type !== 'row');
const variables = dashboard.templating.list;

/** Units of Grafana that say what the metrics are in. */
const UNITS = ['reqps', 'ops', 's', 'percentunit', 'short', 'none'];

let exported: Series[];

beforeAll(async () => {
  exported = seriesOf(await scrapedText());
});

describe('the dashboard for Grafana', () => {
  it('asks for series that an app exports', () => {
    for (const { title, targets } of panels) {
      for (const { expr } of targets!) expect([title, ...whatIsNotThere(filledIn(expr))]).toEqual([title]);
    }
  });

  it('shows every metric of the library', () => {
    const selectors = panels.flatMap(({ targets }) =>
      targets!.flatMap(({ expr }) => readQuery(filledIn(expr)).selectors),
    );
    const shown = (series: Series) => selectors.some((selector) => selects(selector, series));
    const ofLibrary = exported.filter((series) => series['__name__']!.startsWith('nestjs_sluice_'));
    // The sum of a histogram is of no use beside its quantiles.
    const wanted = names(ofLibrary).filter((name) => !name.endsWith('_sum'));
    expect(wanted).toHaveLength(7);
    expect(names(ofLibrary.filter(shown))).toEqual(wanted);
  });

  it('names its lines by labels that are left', () => {
    for (const { targets } of panels) {
      for (const { expr, legendFormat } of targets!) {
        const { grouping } = readQuery(filledIn(expr));
        for (const [, label] of legendFormat.matchAll(/\{\{(\w+)\}\}/g)) expect(grouping).toContain(label);
      }
    }
  });

  it('has variables that the app has values for', () => {
    expect(variables.map(({ name }) => name)).toEqual(['datasource', 'job', 'instance', 'limit']);
    for (const { definition, type, multi } of variables.filter(({ name }) => name !== 'datasource')) {
      const [, selector, label] = /^label_values\((.*), (\w+)\)$/.exec(definition!)!;
      expect([type, multi]).toEqual(['query', true]);
      expect(whatIsNotThere(filledIn(selector!))).toEqual([]);
      const [taken] = readQuery(filledIn(selector!)).selectors;
      const values = exported.filter((series) => selects(taken!, series)).map((series) => series[label!]);
      expect(values).not.toEqual([]);
      expect(values).not.toContain(undefined);
    }
  });

  it('uses each variable, and no other', () => {
    const names = variables.map(({ name }) => name);
    const used = JSON.stringify(dashboard.panels).matchAll(/\$(?:\{(\w+)\}|(\w+))/g);
    const ofItsOwn = [...used].map(([, braced, plain]) => braced ?? plain!).filter((name) => !name.startsWith('__'));
    expect([...new Set(ofItsOwn)].toSorted()).toEqual(names.toSorted());
  });

  it('has panels that Grafana can lay out', () => {
    const ids = dashboard.panels.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    const taken = new Set<string>();
    for (const { title, gridPos } of dashboard.panels) {
      expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect([title, taken.has(`${x},${y}`)]).toEqual([title, false]);
          taken.add(`${x},${y}`);
        }
      }
    }
  });

  it('says in each panel what it shows, in which unit, from the data source that was chosen', () => {
    for (const { title, description, datasource, fieldConfig, targets } of panels) {
      expect([title, description]).toEqual([expect.stringMatching(/^[A-Z]/), expect.stringMatching(/\.$/)]);
      expect(UNITS).toContain(fieldConfig!.defaults.unit);
      const sources = [datasource!, ...targets!.map((target) => target.datasource)];
      expect(new Set(sources.map(({ uid }) => uid))).toEqual(new Set([`$\{datasource}`]));
      expect(new Set(targets!.map(({ refId }) => refId)).size).toBe(targets!.length);
    }
  });
});

describe('the alerts for Prometheus', () => {
  it('ask for series that an app exports', () => {
    expect(rules.length).toBeGreaterThan(3);
    for (const { alert, expr } of rules) expect([alert, ...whatIsNotThere(expr)]).toEqual([alert]);
  });

  it('say what is wrong by labels that are left', () => {
    for (const { expr, annotations } of rules) {
      const { grouping } = readQuery(expr);
      const texts = annotations.summary + annotations.description;
      for (const [, label] of texts.matchAll(/\$labels\.(\w+)/g)) expect(grouping).toContain(label);
    }
  });

  it('are those that the guide tells of', () => {
    const guide = read('docs/guides/observability.md');
    const told = [...guide.matchAll(/^\| `(RateLimit\w+)`/gm)].map(([, name]) => name);
    expect(told).toEqual(rules.map(({ alert }) => alert));
    for (const { alert, for: duration, labels } of rules) {
      expect(guide).toMatch(new RegExp(`^\\| \`${alert}\` +\\| ${labels.severity} +\\| ${duration} +\\|`, 'm'));
    }
  });
});

describe('queries of the guides', () => {
  it.each(['observability', 'candidates'])('%s.md asks for series that an app exports', (name) => {
    const blocks = [...read(`docs/guides/${name}.md`).matchAll(/^```promql\n([^]*?)^```/gm)].map(([, block]) => block!);
    expect(blocks).not.toEqual([]);
    for (const query of blocks.flatMap((block) => block.trim().split(/\n(?=\S)/))) {
      expect([query, ...whatIsNotThere(query)]).toEqual([query]);
    }
  });
});

function names(of: readonly Series[]): string[] {
  return [...new Set(of.map((series) => series['__name__']!))].toSorted();
}

/** Selectors of a query that take no series that is exported, and labels that none of these has. */
function whatIsNotThere(text: string): string[] {
  const { selectors, grouping } = readQuery(text);
  const named = selectors.map((selector) => selector.filter(({ label }) => label === '__name__'));
  const ofMetrics = exported.filter((series) => named.some((name) => selects(name, series)));
  const known = new Set(ofMetrics.flatMap((series) => Object.keys(series)));
  const labels = [...grouping, ...selectors.flatMap((selector) => selector.map(({ label }) => label))];
  return [
    ...selectors
      .filter((selector) => !exported.some((series) => selects(selector, series)))
      .map((each) => JSON.stringify(each)),
    ...labels.filter((label) => !known.has(label)),
  ];
}

/** A query as Grafana sends it when all is chosen. */
function filledIn(query: string): string {
  return query.replaceAll(/\$__(?:rate_interval|range)\b/g, '5m').replaceAll(/\$(?:job|instance|limit)\b/g, '.*');
}

function read(path: string): string {
  return readFileSync(join(PACKAGE_FOLDER, path), 'utf8');
}
