/**
 * Steps of a release. `repository [url]` fills `repository`, `homepage` and `bugs` of package.json, by default from the repository in which
 * the workflow runs, and makes the links of the README absolute. `check`, which `npm publish` runs first, refuses to publish an incomplete manifest. `notes` prints what the changelog
 * says of this version, `sbom` the software bill of materials of what is shipped.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const DEVELOPMENT = 'cdx:npm:package:development';

/** The manifest with its links to the repository at a URL such as `https://github.com/owner/name`. Keeps a homepage that is set. */
export function withRepository(manifest, given) {
  const url = String(given ?? '').replace(/\/$|\.git$/g, '');
  if (!/^https:\/\/[^/\s]+\/[^\s]+$/.test(url)) {
    throw new Error(
      `The repository is ${JSON.stringify(given)}; wanted is a URL such as https://github.com/owner/name`,
    );
  }
  const links = {
    homepage: manifest.homepage ?? `${url}#readme`,
    bugs: { url: `${url}/issues` },
    repository: { type: 'git', url: `git+${url}.git` },
  };
  const { homepage: _homepage, bugs: _bugs, repository: _repository, ...rest } = manifest;
  const entries = Object.entries(rest);
  const at = entries.findIndex(([name]) => name === 'license') + 1;
  return Object.fromEntries([...entries.slice(0, at), ...Object.entries(links), ...entries.slice(at)]);
}

/** Code of a page, in which nothing is a link, or a link to a file of the repository. */
const CODE_OR_LINK = /^```[^]*?^```|`[^`\n]*`|(!?\[[^\]]*\])\((?![a-z]+:|#)([^)\s]+)\)/gm;

/** A page with links that also lead somewhere on npm's site: to the files of the repository at a tag. */
export function withAbsoluteLinks(page, url, tag) {
  return page.replaceAll(CODE_OR_LINK, (all, text, path) => {
    if (path === undefined) return all;
    return `${text}(${url}/${text.startsWith('!') ? 'raw' : 'blob'}/${tag}/${path})`;
  });
}

/** True if a page has links that lead nowhere on npm's site. */
function hasRelativeLinks(page) {
  return [...page.matchAll(CODE_OR_LINK)].some(([, , path]) => path !== undefined);
}

/** What keeps a package from being published, one line each. */
export function obstacles(manifest, changelog, readme = '') {
  const { name, version, keywords, author } = manifest;
  const wanted = {
    name,
    version,
    description: manifest.description,
    license: manifest.license,
    author: typeof author === 'object' ? author?.name : author,
    keywords: Array.isArray(keywords) && keywords.length > 0,
    'repository.url': manifest.repository?.url,
    homepage: manifest.homepage,
    'bugs.url': manifest.bugs?.url,
  };
  const missing = Object.entries(wanted).flatMap(([field, value]) => (value ? [] : [`package.json has no ${field}`]));
  if (hasRelativeLinks(readme)) missing.push("README.md has links that don't work on npm's site");
  return notesOf(version, changelog) ? missing : [...missing, `CHANGELOG.md says nothing under "## [${version}]"`];
}

/** What the changelog says of a version; undefined if it has no such heading. */
export function notesOf(version, changelog) {
  const section = changelog.split(/^## /m).find((text) => text.startsWith(`[${version}]`));
  return section?.slice(section.indexOf('\n')).trim();
}

/** A bill of materials without the packages that only development needs. `shipped` are names of dependencies and bundled packages. */
export function shippedOnly(bill, shipped) {
  const components = bill.components.filter(({ name }) => shipped.has(name));
  const references = new Set([bill.metadata.component['bom-ref'], ...components.map((each) => each['bom-ref'])]);
  return {
    ...bill,
    components: components.map(({ properties = [], ...component }) => ({
      ...component,
      properties: properties.filter(({ name }) => name !== DEVELOPMENT),
    })),
    dependencies: bill.dependencies
      .filter(({ ref }) => references.has(ref))
      .map(({ ref, dependsOn = [] }) => ({ ref, dependsOn: dependsOn.filter((other) => references.has(other)) })),
  };
}

function printBill() {
  const args = ['sbom', '--sbom-format', 'cyclonedx', '--sbom-type', 'library', '--package-lock-only'];
  const bill = JSON.parse(execFileSync('npm', args, { encoding: 'utf8', maxBuffer: 2 ** 28 }));
  const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8'));
  const bundled = readFileSync('dist/licenses.txt', 'utf8').matchAll(/^((?:@[\w.-]+\/)?[\w.-]+) \d+\.\d+\.\d+\S*$/gm);
  const shipped = new Set([...Object.keys(dependencies), ...[...bundled].map(([, name]) => name)]);
  // Of several versions of a package, what is bundled is the one at the top.
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'));
  const isAtTop = ({ name, version }) => packages[`node_modules/${name}`]?.version === version;
  const shown = shippedOnly({ ...bill, components: bill.components.filter(isAtTop) }, shipped);
  process.stdout.write(`${JSON.stringify(shown, undefined, 2)}\n`);
}

function main([step, url]) {
  const manifest = JSON.parse(readFileSync('package.json', 'utf8'));
  const changelog = readFileSync('CHANGELOG.md', 'utf8');
  if (step === 'repository') {
    const { GITHUB_SERVER_URL = 'https://github.com', GITHUB_REPOSITORY } = process.env;
    const filled = withRepository(manifest, url ?? (GITHUB_REPOSITORY && `${GITHUB_SERVER_URL}/${GITHUB_REPOSITORY}`));
    writeFileSync('package.json', `${JSON.stringify(filled, undefined, 2)}\n`);
    const readme = readFileSync('README.md', 'utf8');
    writeFileSync(
      'README.md',
      withAbsoluteLinks(readme, filled.bugs.url.replace(/\/issues$/, ''), `v${filled.version}`),
    );
  } else if (step === 'check') {
    const found = obstacles(manifest, changelog, readFileSync('README.md', 'utf8'));
    if (found.length > 0) {
      const help =
        'The release workflow fills in the links: node bundle/release.mjs repository https://github.com/owner/name';
      throw new Error(`This cannot be published.\n- ${found.join('\n- ')}\n${help}`);
    }
  } else if (step === 'notes') {
    process.stdout.write(`${notesOf(manifest.version, changelog)}\n`);
  } else if (step === 'sbom') {
    printBill();
  } else {
    throw new Error(`The step is ${JSON.stringify(step)}; wanted is 'repository', 'check', 'notes' or 'sbom'`);
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  try {
    main(process.argv.slice(2));
  } catch (error) {
    console.error(error.message);
    process.exitCode = 1;
  }
}
