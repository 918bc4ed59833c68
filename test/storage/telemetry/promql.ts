import { parser } from '@prometheus-io/lezer-promql';

type SyntaxNode = ReturnType<typeof parser.parse>['topNode'];

/** A series as Prometheus knows it: its labels, `__name__` among them. */
export type Series = Readonly<Record<string, string>>;

export interface Matcher {
  readonly label: string;
  readonly operator: string;
  readonly value: string;
}

export interface Query {
  /** What each vector selector asks of series; the name of a metric is one of them. */
  readonly selectors: readonly (readonly Matcher[])[];
  /** Labels that aggregations keep, and by which vectors are joined. */
  readonly grouping: readonly string[];
}

/** Reads a query by Prometheus's own grammar. Throws if it is none. */
export function readQuery(text: string): Query {
  const selectors: Matcher[][] = [];
  const grouping: string[] = [];
  parser.parse(text).iterate({
    enter({ type, node, from }) {
      if (type.isError) throw new Error(`no PromQL from character ${from} on: ${text}`);
      if (type.name === 'VectorSelector') selectors.push(matchersOf(node, text));
      if (type.name === 'GroupingLabels')
        grouping.push(...node.getChildren('LabelName').map((each) => slice(each, text)));
    },
  });
  return { selectors, grouping };
}

function matchersOf(selector: SyntaxNode, text: string): Matcher[] {
  const name = selector.getChild('Identifier');
  const named = name === null ? [] : [{ label: '__name__', operator: '=', value: slice(name, text) }];
  const matchers = selector.getChild('LabelMatchers')?.getChildren('UnquotedLabelMatcher') ?? [];
  return [
    ...named,
    ...matchers.map((matcher) => ({
      label: slice(matcher.getChild('LabelName')!, text),
      operator: slice(matcher.getChild('MatchOp')!, text),
      value: JSON.parse(slice(matcher.getChild('StringLiteral')!, text)) as string,
    })),
  ];
}

function slice({ from, to }: SyntaxNode, text: string): string {
  return text.slice(from, to);
}

/** Whether a selector takes a series. */
export function selects(selector: readonly Matcher[], series: Series): boolean {
  return selector.every(({ label, operator, value }) => {
    const has = series[label] ?? '';
    const matches = operator.endsWith('~') ? new RegExp(`^(?:${value})$`).test(has) : has === value;
    return matches !== operator.startsWith('!');
  });
}

/** The series of what an app exports, with the labels that Prometheus adds when it reads them. */
export function seriesOf(exported: string): Series[] {
  return [...exported.matchAll(/^([a-z_]+)\{(.*)\} \S+$/gm)].map(([, name, labels]) => ({
    __name__: name!,
    job: 'app',
    instance: '127.0.0.1:3000',
    ...Object.fromEntries(
      [...labels!.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label, value]) => [label!, value!]),
    ),
  }));
}
