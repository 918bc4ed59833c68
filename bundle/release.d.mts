interface Manifest {
  readonly [field: string]: unknown;
}

interface Component {
  readonly name: string;
  readonly 'bom-ref': string;
  readonly properties?: readonly { readonly name: string; readonly value: string }[];
}

interface Bill {
  readonly metadata: { readonly component: Component };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn?: readonly string[] }[];
}

export function withRepository(manifest: Manifest, url: unknown): Manifest;
export function withAbsoluteLinks(page: string, url: string, tag: string): string;
export function obstacles(manifest: Manifest, changelog: string, readme?: string): string[];
export function notesOf(version: string, changelog: string): string | undefined;
export function shippedOnly(bill: Bill, shipped: ReadonlySet<string>): Bill;
