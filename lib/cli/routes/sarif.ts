import type { LocatedRoute } from './locate.js';

const RULE = 'route-without-rate-limit';

/** The unlimited routes as SARIF 2.1.0, which code scanning reads. */
export function sarifOf(routes: readonly LocatedRoute[], version: string): object {
  return {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: {
          driver: {
            name: 'nestjs-sluice',
            version,
            rules: [
              {
                id: RULE,
                name: 'RouteWithoutRateLimit',
                shortDescription: { text: 'A route has no rate limit' },
                help: { text: "Add @RateLimit, or @SkipRateLimit({ because: '…' }) if it needs none." },
                defaultConfiguration: { level: 'warning' },
                properties: { tags: ['security', 'external/cwe/cwe-770'], 'security-severity': '7.5' },
              },
            ],
          },
        },
        results: routes.filter(({ unlimited }) => unlimited).map(resultOf),
      },
    ],
  };
}

function resultOf({ route, controller, handler, file, line }: LocatedRoute): object {
  const region = line === undefined ? {} : { region: { startLine: line } };
  const physical =
    file === undefined ? {} : { physicalLocation: { artifactLocation: { uri: uriOf(file) }, ...region } };
  return {
    ruleId: RULE,
    level: 'warning',
    message: { text: `${route} (${controller}.${handler}) has no rate limit` },
    locations: [
      { ...physical, logicalLocations: [{ fullyQualifiedName: `${controller}.${handler}`, kind: 'member' }] },
    ],
    partialFingerprints: { 'route/v1': `${controller}.${handler} ${route}` },
  };
}

function uriOf(file: string): string {
  return file.split('\\').join('/').split('/').map(encodeURIComponent).join('/');
}
