import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { ExecutionContext } from '@nestjs/common';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import type { MemoryStore } from '../../../lib/index.js';
import type { StoreCheck } from '../../../lib/nest/request/charges.js';
import { type GuardContinuation, LimitedRequest } from '../../../lib/nest/request/limited-request.js';
import { RouteRules } from '../../../lib/app/rules/route-rules.js';
import type { Rule } from '../../../lib/app/rules/rule.js';
import { createTestingStore } from '../../../lib/testing/index.js';
import { httpReader } from '../../../lib/app/transports/http.reader.js';
import { ruleOf } from '../../support/limits/rules.js';
import { Connection } from './connections.js';

class Routes {
  get() {}
}
const handler = Reflect.get(Routes.prototype, 'get');

const window = { algo: 'fixed-window', rate: 5, interval: '1h' } as const;
const [one, two, three] = ['one', 'two', 'three'].map((name) => ruleOf(window, { name })) as [Rule, Rule, Rule];

const later: GuardContinuation = {
  afterGuards: () => true,
  intercept: (_, next) => next.handle(),
};

const functions = { ask: () => undefined, rules: () => [] };

function requestOf(given: object = {}, response: object = {}, hasFunctions = false): LimitedRequest {
  const context = new ExecutionContextHost([given, response], Routes, handler) as ExecutionContext;
  const specs = hasFunctions ? [functions as never] : [one, two, three];
  const plan = new RouteRules([{ location: 'test', skips: [], specs }], false);
  return new LimitedRequest(context, Routes, handler, httpReader, plan, later);
}

const names = (rules: readonly { readonly name: string }[]) => rules.map(({ name }) => name);
const charged = ({ charges }: LimitedRequest) => charges.map(({ rule, units }) => [rule.name, units]);
const decided = ({ decisions }: LimitedRequest) => decisions.map(({ limit, remaining }) => [limit, remaining]);

describe('a request', () => {
  let store: MemoryStore;
  beforeEach(() => {
    store = createTestingStore();
  });
  afterEach(() => store.close());

  async function check(rules: readonly Rule[], cost = 1): Promise<StoreCheck> {
    const entries = rules.map((rule) => ({ rule, limit: rule.limit, identity: 'global', cost }));
    const [decisions] = await store.check([{ entries }]);
    return { entries, decisions: decisions!, store, refundable: true };
  }

  /** Checks a request against some rules, as a phase does. */
  async function checked(request: LimitedRequest, rules: readonly Rule[], cost?: number): Promise<void> {
    request.apply(rules);
    const made = await check(rules, cost);
    request.record(made);
    request.charge(made);
  }

  it('has nothing before it is checked', () => {
    const request = requestOf();
    expect(request.result).toBeUndefined();
    expect([request.applicable, request.entries, request.decisions, request.leases]).toEqual([[], [], [], []]);
    expect([request.charges, request.limits]).toEqual([[], []]);
  });

  it('sums up the decisions of all checks', async () => {
    const request = requestOf();
    const first = request.record(await check([one]));
    expect(request.result).toBe(first);
    expect(first).toMatchObject({ allowed: true, tightest: { limit: 'one', remaining: 4 } });
    const both = request.record(await check([two], 3));
    expect(both).toMatchObject({ decisions: [{ limit: 'one' }, { limit: 'two' }], tightest: { limit: 'two' } });
    expect(request.result).toBe(both);
    expect(names(request.limits)).toEqual(['one', 'two']);
  });

  it('has the lists of its only check as they are, and makes none', async () => {
    const request = requestOf();
    const rules = [one, two];
    const only = await check(rules);
    request.apply(rules);
    request.record(only);
    expect(request.applicable).toBe(rules);
    expect(request.entries).toBe(only.entries);
    expect(request.decisions).toBe(only.decisions);
  });

  it('has the charges of all checks in their order, also of those that nobody asked for at first', async () => {
    const request = requestOf();
    const charges = request.charge(await check([one]));
    expect(charges).toMatchObject([{ rule: one }]);
    request.deferCharge(await check([two]));
    request.deferCharge(await check([three], 2));
    const all = [
      ['one', 1],
      ['two', 1],
      ['three', 2],
    ];
    expect(charged(request)).toEqual(all);
    expect(charged(request)).toEqual(all);
    // It is one list: what is settled of it stays so.
    expect(request.charges[0]).toBe(charges[0]);
  });

  it('has all that is held for it', () => {
    const request = requestOf();
    const [first, second] = ['first', 'second'].map((id) => ({ id })) as never[];
    request.hold([first!]);
    request.hold([second!]);
    request.hold([]);
    expect(request.leases).toMatchObject([{ id: 'first' }, { id: 'second' }]);
  });

  it('is read anew with each phase, which may know more of it', () => {
    const given: Record<string, unknown> = {};
    const request = requestOf(given);
    const { parts, context } = request;
    expect(request.parts).toBe(parts);
    const next = new ExecutionContextHost([{ ...given, user: 'ann' }, {}], Routes, handler) as ExecutionContext;
    expect(request.begin(next)).toBe(request);
    expect(request.context).toBe(next);
    expect(request.context).not.toBe(context);
    expect(request.parts.request).toEqual({ user: 'ann' });
  });

  it('is closed once its client has left, or its address is lost', () => {
    const open = { remoteAddress: '203.0.113.7', localAddress: '203.0.113.1' };
    expect(requestOf({ socket: open }, new Connection()).isClosed).toBe(false);
    const left = new Connection();
    left.leave();
    expect(requestOf({ socket: open }, left).isClosed).toBe(true);
    expect(requestOf({ socket: { localAddress: '203.0.113.1' } }, new Connection()).isClosed).toBe(true);
    expect(requestOf(undefined, undefined).isClosed).toBe(false);
  });

  it('of which nobody knows is not closed', () => {
    const context = new ExecutionContextHost([], Routes, handler) as ExecutionContext;
    const request = new LimitedRequest(context, Routes, handler, httpReader, requestOf().routeRules, later);
    expect(request.isClosed).toBe(false);
    expect(request.connection).toBeUndefined();
  });

  it('may be given other limits until the functions of its route have been asked', () => {
    const request = requestOf({}, {}, true);
    expect(request.mayReplaceLimits).toBe(true);
    request.rules = [];
    expect(request.mayReplaceLimits).toBe(false);
    expect(requestOf().mayReplaceLimits).toBe(false);
  });

  describe('takes over of a middleware', () => {
    it('the rules that hold for it, with their decisions and charges', async () => {
      const early = requestOf();
      await checked(early, [one, two], 2);
      const request = requestOf();
      expect(request.adopt(early, [two, three])).toEqual([three]);
      expect(request.earlier).toBe(early);
      expect(names(request.applicable)).toEqual(['two']);
      expect(names(request.limits)).toEqual(['two']);
      expect(decided(request)).toEqual([['two', 3]]);
      expect(charged(request)).toEqual([['two', 2]]);
      expect(request.result).toMatchObject({ decisions: [{ limit: 'two' }], tightest: { limit: 'two' } });
      // A charge is one, whoever settles it.
      expect(request.charges[0]).toBe(early.charges[1]);
    });

    it('no rule twice, also one that did not apply to it', async () => {
      const early = requestOf();
      early.apply([three]);
      const request = requestOf();
      expect(request.adopt(early, [one, three])).toEqual([one]);
      expect(request.limits).toEqual([]);
      expect(request.result).toBeUndefined();
    });

    it('what it adds to what was checked', async () => {
      const early = requestOf();
      await checked(early, [two]);
      const request = requestOf();
      await checked(request, [one]);
      expect(request.result!.decisions).toHaveLength(1);
      request.adopt(early, [two]);
      expect(names(request.applicable)).toEqual(['one', 'two']);
      expect(names(request.limits)).toEqual(['one', 'two']);
      expect(request.result).toMatchObject({ decisions: [{ limit: 'one' }, { limit: 'two' }] });
    });
  });

  describe('whose functions give other limits', () => {
    it('keeps what was checked of these, and gives the charges of the others back', async () => {
      const request = requestOf();
      await checked(request, [one, two, three], 2);
      expect(request.result!.decisions).toHaveLength(3);
      const dropped = request.keepOnly([two]);
      expect(names(dropped.map(({ rule }) => rule))).toEqual(['one', 'three']);
      expect(names(request.limits)).toEqual(['two']);
      expect(decided(request)).toEqual([['two', 3]]);
      expect(request.result).toMatchObject({ decisions: [{ limit: 'two' }] });
    });

    it('keeps the charges of a middleware, whose limits hold for every route', async () => {
      const early = requestOf();
      await checked(early, [one]);
      const request = requestOf();
      request.adopt(early, [one, two]);
      await checked(request, [two, three]);
      expect(names(request.keepOnly([three]).map(({ rule }) => rule))).toEqual(['two']);
      expect(names(request.limits)).toEqual(['three']);
    });
  });
});
