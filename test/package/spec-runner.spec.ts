import { execFile } from 'node:child_process';
import { describe, expect, it } from '@jest/globals';

const JEST = 'node_modules/jest/bin/jest.js';

/** What Jest says of an example, which a process of its own runs as a spec. */
function outputOf(example: string): Promise<{ code: unknown; text: string }> {
  const spec = `<rootDir>/test/support/jest/examples/${example}.ts`;
  const args = [JEST, '--config', 'jest.unit.config.mjs', '--testMatch', spec, '--no-color', '--maxWorkers=1'];
  return new Promise((resolved) => {
    execFile(process.execPath, args, (error, stdout, stderr) =>
      resolved({ code: error?.code ?? 0, text: stdout + stderr }),
    );
  });
}

describe('a spec that fails', () => {
  it('shows the line of a callback that failed, and of a test that hangs', async () => {
    const { code, text } = await outputOf('failing');

    expect(code).toBe(1);
    expect(text).toMatch(/^ +> +8 \| +expect\(value\)/m);
    expect(text).toMatch(/^ +> +12 \| +it\('hangs'/m);
  });

  it('shows the line that throws at import', async () => {
    const { code, text } = await outputOf('at-import');

    expect(code).toBe(1);
    expect(text).toMatch(/^ +> +6 \| +throw new Error/m);
  });
});
