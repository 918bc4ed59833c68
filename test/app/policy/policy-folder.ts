import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach } from '@jest/globals';

/** A folder with policy files, a new one for each test. */
export class PolicyFolder {
  private folder = '';
  private swaps = 0;

  constructor() {
    beforeEach(async () => {
      this.folder = await mkdtemp(join(tmpdir(), 'sluice-policies-'));
    });
    afterEach(() => rm(this.folder, { recursive: true, force: true }));
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  /** Writes to the file itself. */
  async write(name: string, text: string | Buffer): Promise<string> {
    await mkdir(dirname(this.path(name)), { recursive: true });
    await writeFile(this.path(name), text);
    return this.path(name);
  }

  /** Puts another file in its place, as editors do. */
  async replace(name: string, text: string): Promise<void> {
    const other = await this.write(`.swap${++this.swaps}`, text);
    await rename(other, this.path(name));
  }

  /** Writes a file as Kubernetes mounts a ConfigMap: behind two symbolic links, of which the second one is turned. */
  async mount(name: string, text: string): Promise<void> {
    const version = `..version${++this.swaps}`;
    await this.write(join(version, name), text);
    await symlink(version, this.path('..data_tmp'));
    await rename(this.path('..data_tmp'), this.path('..data'));
    await symlink(join('..data', name), this.path(name)).catch(() => undefined);
  }

  remove(name: string): Promise<void> {
    return rm(this.path(name));
  }
}
