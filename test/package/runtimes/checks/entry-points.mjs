import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const { exports: exported, peerDependenciesMeta: optional } = require('nestjs-sluice/package.json');
const names = Object.keys(exported)
  .filter((path) => !path.endsWith('.json'))
  .map((path) => `nestjs-sluice${path.slice(1)}`);

export const entryPoints = {
  'import of every entry point': () => loadAll((name) => import(name)),
  'require of every entry point': () => loadAll((name) => require(name)),
};

/** Loads all of them. Where an optional peer is not installed, the error has to name it. */
async function loadAll(load) {
  assert.ok(names.length >= 10);
  const failures = [];
  for (const name of names) {
    try {
      assert.ok(Object.keys(await load(name)).length > 0, `${name} exports nothing`);
    } catch (error) {
      if (!missingPeers().some((peer) => error.message.includes(peer))) failures.push(`${name}: ${error.message}`);
    }
  }
  assert.deepEqual(failures, []);
}

function missingPeers() {
  return Object.keys(optional).filter((peer) => {
    try {
      require.resolve(peer);
      return false;
    } catch {
      return true;
    }
  });
}
