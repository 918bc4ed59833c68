import { execFile } from 'node:child_process';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from '@jest/globals';

const JEST = 'node_modules/jest/bin/jest.js';

/** What Jest says of an example, which a process of its own runs as a spec. */
function outputOf(example: string): Promise<{ code: unknown; text: string }> {
  const spec = `<rootDir>/test/support/jest/examples/${example}.ts`;
  const args = [JEST, '--config', 'jest.unit.config.mjs', '--testMatch', spec, '--maxWorkers=1'];
  // What it runs of the library does not count.
  const { TEST_COVERAGE: _coverage, ...env } = process.env;
  return new Promise((resolved) => {
    // Where the environment asks for colours, as on many a CI, the code that Jest shows has them in any case.
    execFile(process.execPath, args, { env }, (error, stdout, stderr) =>
      resolved({ code: error?.code ?? 0, text: stripVTControlCharacters(stdout + stderr) }),
    );
  });
}

describe('a spec that fails', () => {
  it('shows the line of what failed, and of a test that hangs', async () => {
    const { code, text } = await outputOf('failing');

    expect(code).toBe(1);
    expect(text).toMatch(/^ +> +8 \| +expect\(value\)/m);
    expect(text).toMatch(/^ +> +13 \| +expect\({ seen: 1 }\)/m);
    expect(text).toMatch(/^ +> +17 \| +await expect\(Promise\.reject/m);
    expect(text).toMatch(/^ +Expected three assertions to be called but received two assertion calls/m);
    expect(text).toMatch(/^ +> +26 \| +it\('hangs'/m);
  });

  it('shows the line that throws at import', async () => {
    const { code, text } = await outputOf('at-import');

    expect(code).toBe(1);
    expect(text).toMatch(/^ +> +6 \| +throw new Error/m);
  });
});
