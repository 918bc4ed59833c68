import { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  getLimiterToken,
  type LimitDefinition,
  Limiter,
  LimiterService,
  RateLimitExceededException,
  RateLimitModule,
} from 'nestjs-sluice';
import { createTestingStore, exhaust, RateLimitTesting, TestClock } from 'nestjs-sluice/testing';
import request from 'supertest';
import { App } from 'supertest/types.js';
import { AppController, LoginController } from './../src/app.controller.js';
import { AppModule } from './../src/app.module.js';
import { AppService } from './../src/app.service.js';

describe('limits (e2e)', () => {
  let app: INestApplication<App>;

  afterEach(async () => {
    await app?.close();
  });

  it('hold, with a clock that is moved', async () => {
    const clock = new TestClock();
    const store = createTestingStore({ clock });
    const builder = Test.createTestingModule({ imports: [AppModule] });
    app = (await RateLimitTesting.useStore(builder, store).compile()).createNestApplication();
    await app.init();
    const get = () => request(app.getHttpServer()).get('/');
    await get().expect(200).expect('Hello World!');
    await get().expect(200);
    await get().expect(429).expect('Retry-After', '3600');
    clock.advance('1h');
    await get().expect(200);
  });

  it('share their counters with code', async () => {
    const builder = Test.createTestingModule({ imports: [AppModule] });
    app = (await builder.compile()).createNestApplication();
    await app.init();
    const logins = app.get<Limiter>(getLimiterToken('login'));
    expect(logins).toBeInstanceOf(Limiter);
    expect(app.get(LoginController).logins.name).toBe('login');
    expect(app.get(LoginController).limiters).toBe(app.get(LimiterService));
    for (const address of ['ip:127.0.0.1', 'ip:::ffff:127.0.0.1', 'ip:::1']) await exhaust(logins, address);
    await request(app.getHttpServer()).post('/login').expect(429);
  });

  it('are switched off', async () => {
    const builder = Test.createTestingModule({ imports: [AppModule] });
    app = (await RateLimitTesting.disable(builder).compile()).createNestApplication();
    await app.init();
    for (let i = 0; i < 3; i++) await request(app.getHttpServer()).get('/').expect(200);
  });

  it('answer with problem details', async () => {
    const limits: LimitDefinition[] = [{ name: 'all', algo: 'fixed-window', rate: 1, interval: '1h' }];
    const builder = Test.createTestingModule({
      imports: [RateLimitModule.forRoot({ problem: true, limits })],
      controllers: [AppController],
      providers: [AppService],
    });
    app = (await builder.compile()).createNestApplication();
    await app.init();
    await request(app.getHttpServer()).get('/').expect(200);
    await request(app.getHttpServer())
      .get('/')
      .expect(429)
      .expect('Content-Type', /^application\/problem\+json/)
      .expect(({ body }) => expect((body as { 'violated-policies'?: unknown })['violated-policies']).toEqual(['all']));
  });

  it('say that ioredis is missing', async () => {
    const wrong = RateLimitModule.forRoot({ redis: 'redis://127.0.0.1:1' });
    await expect(Test.createTestingModule({ imports: [wrong] }).compile()).rejects.toThrow('ioredis');
    expect(RateLimitExceededException.prototype.getStatus).toBeInstanceOf(Function);
  });
});
