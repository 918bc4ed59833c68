import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { RatesApp } from '../../app/overrides/overrides-app.js';
import { OpenTelemetrySdk } from '../../storage/telemetry/open-telemetry-sdk.js';

let telemetry: OpenTelemetrySdk;
let app: RatesApp;
beforeEach(async () => {
  telemetry = new OpenTelemetrySdk().collectMetrics().trace();
  app = await RatesApp.start({ telemetry: true });
});
afterEach(async () => {
  await app.close();
  await telemetry.stop();
});

it('metrics and spans are told nothing of explanations', async () => {
  const { service } = app;
  await telemetry.inSpan('job', () => service.for('login').consume('user:1'));
  const before = JSON.stringify([await telemetry.measured(), telemetry.spans()[0]!.attributes]);
  await telemetry.inSpan('explaining', () => service.explain({ limit: 'login', key: 'user:1', cost: 100 }));
  const [job, explaining] = telemetry.spans();
  expect(JSON.stringify([await telemetry.measured(), job!.attributes])).toBe(before);
  expect(explaining).toEqual({ name: 'explaining', attributes: {}, events: [] });
  await service.for('login').peek('user:1');
  expect(JSON.stringify([await telemetry.measured(), job!.attributes])).not.toBe(before);
});
