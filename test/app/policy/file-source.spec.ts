import { execFileSync } from 'node:child_process';
import { mkdtemp, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { FilePolicySource } from '../../../lib/app/policy/sources.js';
import { PolicyFolder } from './policy-folder.js';

const folder = new PolicyFolder();
const ONE = 'limits:\n  api: { rate: 1 }\n';
const TWO = 'limits:\n  api: { rate: 2 }\n';
const LONG = `${TWO}  more: { rate: 3 }\n`;

async function opened(text = ONE): Promise<FilePolicySource> {
  const source = new FilePolicySource(await folder.write('limits.yaml', text));
  await source.read();
  return source;
}

/** What so many looks find: the options of `api`, and how many limits there are; or what is wrong. */
async function looks(source: FilePolicySource, count: number): Promise<unknown[]> {
  const found: unknown[] = [];
  for (let look = 0; look < count; look++) {
    const reading = await source.look();
    if (reading === undefined || reading === 'changing') found.push(reading);
    else if ('problems' in reading) found.push(reading.problems[0]!.message);
    else found.push([reading.policy.limits.get('api')?.options, reading.policy.limits.size]);
  }
  return found;
}

describe('a file that is looked at', () => {
  it('is not read again while it is the same', async () => {
    expect(await looks(await opened(), 3)).toEqual([undefined, undefined, undefined]);
  });

  it('is read once two looks saw the same', async () => {
    const source = await opened();
    await folder.write('limits.yaml', TWO);
    expect(await looks(source, 3)).toEqual(['changing', [{ rate: 2 }, 1], undefined]);
  });

  it('is not read while it is written to, though each part of it is a policy', async () => {
    const source = await opened();
    const parts = ['', 'limits:\n', TWO, LONG];
    for (const part of parts) {
      await folder.write('limits.yaml', part);
      expect(await looks(source, 1)).toEqual(['changing']);
    }
    expect(await looks(source, 2)).toEqual([[{ rate: 2 }, 2], undefined]);
  });

  it('is read after another one was put in its place, though it has its size and times', async () => {
    const source = await opened();
    await folder.replace('limits.yaml', TWO);
    await utimes(folder.path('limits.yaml'), 1, 1);
    await looks(source, 2);
    await folder.replace('limits.yaml', ONE);
    await utimes(folder.path('limits.yaml'), 1, 1);
    expect(await looks(source, 3)).toEqual(['changing', [{ rate: 1 }, 1], undefined]);
  });

  it('is read after a symbolic link on the way to it was turned, as Kubernetes does', async () => {
    await folder.mount('limits.yaml', ONE);
    const source = new FilePolicySource(folder.path('limits.yaml'));
    await source.read();
    expect(await looks(source, 1)).toEqual([undefined]);
    await folder.mount('limits.yaml', TWO);
    expect(await looks(source, 3)).toEqual(['changing', [{ rate: 2 }, 1], undefined]);
  });

  it('is not read in another folder, whose file it may be, but where it stood first', async () => {
    const elsewhere = await mkdtemp(join(tmpdir(), 'sluice-elsewhere-'));
    await writeFile(join(elsewhere, 'secrets.yaml'), 'password: hunter2\n');
    const source = await opened();
    await folder.remove('limits.yaml');
    await symlink(join(elsewhere, 'secrets.yaml'), folder.path('limits.yaml'));
    const refused = expect.stringContaining(
      'it cannot be read: it points to another folder than before. Keep it in its own folder or in that of the start',
    );
    expect(await looks(source, 3)).toEqual(['changing', refused, undefined]);
    await folder.replace('limits.yaml', TWO);
    expect(await looks(source, 2)).toEqual(['changing', [{ rate: 2 }, 1]]);
    // One that was put there as a link may be turned within the folder that it leads to.
    await writeFile(join(elsewhere, 'v1.yaml'), ONE);
    await writeFile(join(elsewhere, 'v2.yaml'), TWO);
    await folder.remove('limits.yaml');
    await symlink(join(elsewhere, 'v1.yaml'), folder.path('limits.yaml'));
    const linked = new FilePolicySource(folder.path('limits.yaml'));
    expect(await linked.read()).toHaveProperty('policy');
    await folder.remove('limits.yaml');
    await symlink(join(elsewhere, 'v2.yaml'), folder.path('limits.yaml'));
    expect(await looks(linked, 2)).toEqual(['changing', [{ rate: 2 }, 1]]);
    await rm(elsewhere, { recursive: true });
  });

  it('does not count as another one for being touched', async () => {
    const source = await opened();
    await utimes(folder.path('limits.yaml'), 5, 5);
    expect(await looks(source, 3)).toEqual(['changing', undefined, undefined]);
  });

  it('may be wrong, and right again', async () => {
    const source = await opened();
    await folder.write('limits.yaml', 'limits: {');
    expect(await looks(source, 3)).toEqual(['changing', expect.stringContaining('it is not YAML'), undefined]);
    await folder.write('limits.yaml', ONE);
    expect(await looks(source, 2)).toEqual(['changing', [{ rate: 1 }, 1]]);
  });

  it('may be gone, and there again', async () => {
    const source = await opened();
    await folder.remove('limits.yaml');
    expect(await looks(source, 3)).toEqual([
      'changing',
      expect.stringContaining('it cannot be read: ENOENT'),
      undefined,
    ]);
    await folder.write('limits.yaml', TWO);
    expect(await looks(source, 2)).toEqual(['changing', [{ rate: 2 }, 1]]);
  });

  it('may be gone for a moment', async () => {
    const source = await opened();
    await folder.remove('limits.yaml');
    expect(await looks(source, 1)).toEqual(['changing']);
    await folder.write('limits.yaml', TWO);
    expect(await looks(source, 2)).toEqual(['changing', [{ rate: 2 }, 1]]);
  });

  it('may be a folder, which is no policy', async () => {
    const source = await opened();
    await folder.remove('limits.yaml');
    await folder.write('limits.yaml/other', ONE);
    expect(await looks(source, 2)).toEqual(['changing', expect.stringContaining('it cannot be read: EISDIR')]);
  });

  it('may be a pipe that nobody writes to, which is not waited for', async () => {
    const source = await opened();
    await folder.remove('limits.yaml');
    execFileSync('mkfifo', [folder.path('limits.yaml')]);
    expect(await looks(source, 2)).toEqual(['changing', expect.stringContaining('it is empty')]);
    await folder.replace('limits.yaml', TWO);
    expect(await looks(source, 2)).toEqual(['changing', [{ rate: 2 }, 1]]);
  });

  it('is read no farther than a policy may be long', async () => {
    const source = await opened();
    await folder.write('limits.yaml', '#'.repeat(5_000_000));
    expect(await looks(source, 2)).toEqual(['changing', 'it has more than 524288 bytes']);
  });
});
