import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findRedisServer, WHAT_TO_INSTALL } from './redis-binary.mjs';
import { freePort } from '../processes/ports.mjs';

const HOST = '127.0.0.1';
const START_TIMEOUT_MS = 120_000;
const POLL_MS = 20;
const LOG_LINES = 30;

// A test runner that crashes or is killed runs no clean-up of ours, so each server has a guard: a shell that waits until
// the pipe from this process ends, for whatever reason, and then ends the server by its pid and removes its folder.
const GUARD = 'while read -r _; do :; done; kill -9 "$1" 2>/dev/null; rm -rf "$2"';

/** Starts a Redis server (or a Sentinel) on loopback and waits until it answers. */
export async function startRedisProcess({ port, args = [], config = () => '', sentinel = false } = {}) {
  const program = findRedisServer();
  if (!program) throw new Error(WHAT_TO_INSTALL);
  for (let attempt = 1; ; attempt++) {
    const server = new RedisProcess(program, port ?? (await freePort()), args, config, sentinel);
    try {
      await server.start();
      return server;
    } catch (error) {
      await server.stop();
      // Another process may have taken the port since it was picked: then any other will do.
      if (port !== undefined || attempt === 3 || !/address already in use/i.test(String(error))) throw error;
    }
  }
}

class RedisProcess {
  host = HOST;
  port;
  #program;
  #args;
  #config;
  #sentinel;
  #folder;
  #child;
  #log = [];

  constructor(program, port, args, config, sentinel) {
    this.#program = program;
    this.port = port;
    this.#args = args;
    this.#config = config;
    this.#sentinel = sentinel;
  }

  get url() {
    return `redis://${this.host}:${this.port}`;
  }

  get pid() {
    return this.#child?.pid ?? 0;
  }

  get running() {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** The last lines that the server logged. */
  get log() {
    return this.#log.join('\n');
  }

  async start() {
    if (this.running) return;
    if (!this.#folder) {
      this.#folder = await mkdtemp(join(tmpdir(), 'sluice-redis-'));
      await writeFile(join(this.#folder, 'redis.conf'), this.#config());
    }
    const fixed = ['--port', `${this.port}`, '--bind', HOST, '--dir', this.#folder];
    const data = this.#sentinel ? ['--sentinel'] : ['--save', '', '--appendonly', 'no'];
    const child = spawn(this.#program, [join(this.#folder, 'redis.conf'), ...fixed, ...data, ...this.#args], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child = child;
    this.#log = [];
    child.once('error', (error) => this.#log.push(String(error)));
    this.#guard(child);
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text) => this.#remember(text));
      stream.unref();
    }
    // A server that somebody forgot to stop does not keep the test run alive.
    child.unref();
    await this.#answers();
  }

  /** Freezes the server: it keeps its connections and answers nothing. */
  pause() {
    this.#signal('SIGSTOP');
  }

  resume() {
    this.#signal('SIGCONT');
  }

  /** Ends the server at once, as a crash would. `start()` brings it back on its port, with its folder. */
  async kill() {
    const child = this.#child;
    if (!child || !this.running) return;
    child.ref();
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }

  /** Ends the server and removes what it left on the disk. */
  async stop() {
    await this.kill();
    if (this.#folder) await rm(this.#folder, { recursive: true, force: true });
    this.#folder = undefined;
  }

  #signal(signal) {
    if (!this.running) throw new Error(`The Redis on port ${this.port} does not run: it cannot get ${signal}.`);
    this.#child.kill(signal);
  }

  #guard(child) {
    if (child.pid === undefined) return;
    const guard = spawn('/bin/sh', ['-c', GUARD, 'sh', `${child.pid}`, this.#folder], {
      stdio: ['pipe', 'ignore', 'ignore'],
      // Its own process group, so that a Ctrl-C in the terminal does not end the guard before its turn.
      detached: true,
    });
    guard.stdin.on('error', () => {});
    guard.stdin.unref();
    guard.unref();
    // The pid may belong to somebody else from here on.
    child.once('exit', () => guard.kill('SIGKILL'));
  }

  #remember(text) {
    this.#log.push(...text.split('\n').filter(Boolean));
    this.#log.splice(0, this.#log.length - LOG_LINES);
  }

  async #answers() {
    const deadline = Date.now() + START_TIMEOUT_MS;
    while (Date.now() < deadline) {
      if (!this.running || this.pid === 0) {
        // What it said last may still be on its way.
        await sleep(POLL_MS);
        throw new Error(`The Redis on port ${this.port} ended while it started:\n${this.log}`);
      }
      if (await ping(this.port)) return;
      await sleep(POLL_MS);
    }
    throw new Error(`The Redis on port ${this.port} did not answer within ${START_TIMEOUT_MS} ms:\n${this.log}`);
  }
}

function ping(port) {
  return new Promise((resolve) => {
    const socket = connect(port, HOST, () => socket.write('PING\r\n'));
    const done = (answer) => {
      socket.destroy();
      resolve(answer);
    };
    // A server that asks for a password is up as well.
    socket.once('data', (reply) => done(/^(\+PONG|-NOAUTH)/.test(String(reply))));
    socket.once('error', () => done(false));
    socket.setTimeout(1_000, () => done(false));
  });
}
