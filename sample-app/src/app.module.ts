import { Module } from '@nestjs/common';
import { RateLimitModule, usd } from 'nestjs-sluice';
import { RateLimitConsoleModule } from 'nestjs-sluice/console';
import { LoginController } from './auth/login.controller.js';
import { BoardsController } from './boards/boards.controller.js';
import { CompletionsController } from './completions/completions.controller.js';
import { ThisMachineGuard } from './console/this-machine.guard.js';
import { DemoTraffic } from './demo-traffic/demo-traffic.js';
import { DigestsController } from './digests/digests.controller.js';
import { ExportsController } from './exports/exports.controller.js';
import { ForecastController } from './forecast/forecast.controller.js';
import { MailController } from './mail/mail.controller.js';
import { MailQueue } from './mail/mail-queue.js';
import { OrdersController } from './orders/orders.controller.js';
import { PlaygroundController } from './playground/playground.controller.js';
import { PreviewsController } from './previews/previews.controller.js';
import { QuoteProvider } from './quotes/quote-provider.js';
import { QuotesController } from './quotes/quotes.controller.js';
import { RatesController } from './rates/rates.controller.js';
import { InvoicesController } from './invoices/invoices.controller.js';
import { RecommendationsController } from './recommendations/recommendations.controller.js';
import { RendersController } from './renders/renders.controller.js';
import { ReportsController } from './reports/reports.controller.js';
import { SearchController } from './search/search.controller.js';
import { Settings } from './settings/settings.js';
import { SettingsModule } from './settings/settings.module.js';
import { SummariesController } from './summaries/summaries.controller.js';
import { SyncQueue } from './syncs/sync-queue.js';
import { SyncsController } from './syncs/syncs.controller.js';
import { ThumbnailsController } from './thumbnails/thumbnails.controller.js';
import { TranslationsController } from './translations/translations.controller.js';

/** Where the console is. */
export const CONSOLE_PATH = 'ops/limits';

@Module({
  imports: [
    SettingsModule,
    RateLimitModule.forRootAsync({
      imports: [SettingsModule],
      inject: [Settings],
      useFactory: ({ redisUrl }: Settings) => ({
        ...(redisUrl !== undefined && { redis: redisUrl }),
        limits: [{ name: 'burst', algo: 'gcra', rate: 50, interval: '1s', burst: 100 }],
        define: {
          login: {
            algo: 'sliding-log',
            rate: 5,
            interval: '15m',
            count: 'failed',
            blockFor: '15m',
            message: 'Too many failed attempts to log in',
          },
          search: { algo: 'gcra', rate: 10, interval: '1m', burst: 5 },
          // What a call of a language model takes of each: requests, tokens and money.
          'model-requests': { algo: 'sliding-window', rate: 60, interval: '1m' },
          'completion-tokens': { algo: 'sliding-window', rate: 10_000, interval: '1m', hold: '1m' },
          'model-money': {
            algo: 'budget',
            limit: usd('0.01'),
            period: 'day',
            timezone: 'Europe/Berlin',
            hold: '1m',
            usage: '400d',
          },
          // Users within their teams: charged together.
          'board-user': {
            algo: 'sliding-window',
            rate: 4,
            ceiling: 6,
            interval: '1m',
            key: 'header:x-user',
            within: 'board-team',
          },
          'board-team': { algo: 'sliding-window', rate: 20, lends: 0.5, interval: '1m', key: 'header:x-team' },
          invoices: {
            algo: 'calendar-window',
            rate: 3,
            period: 'month',
            timezone: 'Europe/Berlin',
            key: 'user',
            anchor: '2026-01-31',
            rollover: 0.5,
            credits: true,
          },
          // Asked by visitors that are made up.
          feed: { algo: 'token-bucket', rate: 2, interval: '1s', burst: 10 },
          'daily-translations': {
            algo: 'calendar-window',
            rate: 5,
            period: 'day',
            timezone: 'Europe/Berlin',
            retain: '7d',
            key: 'user',
          },
        },
      }),
    }),
    RateLimitConsoleModule.forRoot({
      path: CONSOLE_PATH,
      guards: [ThisMachineGuard],
      write: [ThisMachineGuard],
      actor: () => 'somebody at this machine',
      identities: 'plain',
    }),
  ],
  controllers: [
    LoginController,
    SearchController,
    ExportsController,
    ReportsController,
    TranslationsController,
    ForecastController,
    MailController,
    ThumbnailsController,
    DigestsController,
    SummariesController,
    CompletionsController,
    QuotesController,
    RatesController,
    OrdersController,
    RecommendationsController,
    InvoicesController,
    PreviewsController,
    RendersController,
    BoardsController,
    SyncsController,
    PlaygroundController,
  ],
  providers: [MailQueue, QuoteProvider, SyncQueue, DemoTraffic],
})
export class AppModule {}
