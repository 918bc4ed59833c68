import type { Settings } from './plan-model.js';
import type { Kind, Step } from './plan-stage.js';

interface Example {
  readonly kind: Kind;
  readonly settings: Settings;
  readonly history: readonly Step[];
}

const window: Kind = { algo: 'calendar-window', holdHours: 1, retains: false };
const releasing: Settings = { rate: 10, releases: true };
const charging: Settings = { rate: 10, releases: false };
const day = { do: 'wait', minutes: 1440 } as const;
const lapse = { do: 'wait', minutes: 61 } as const;

/** The shortest histories that were counted wrong once. */
export const EXAMPLES: Readonly<Record<string, Example>> = {
  'credits of a hold come back that lapsed before anybody asked': {
    kind: { ...window, credits: true },
    settings: releasing,
    history: [{ do: 'credit', units: 5 }, { do: 'reserve', units: 15 }, day],
  },
  'units of a hold move on that lapsed before anybody asked': {
    kind: { ...window, rollover: 0.5 },
    settings: releasing,
    history: [{ do: 'reserve', units: 10 }, day],
  },
  'a request is charged under a higher rate before the window ends': {
    kind: { ...window, rollover: 0.5 },
    settings: charging,
    history: [
      { do: 'consume', units: 1 },
      { do: 'change', settings: { rate: 100, releases: false } },
      { do: 'consume', units: 1 },
      day,
    ],
  },
  'the rate is raised after a silent window': {
    kind: { ...window, rollover: 0.5 },
    settings: charging,
    history: [{ do: 'consume', units: 1 }, day, day, { do: 'change', settings: { rate: 100, releases: false } }],
  },
  'hundreds of holds have lapsed': {
    kind: { ...window, retains: true },
    settings: { rate: 1000, releases: true },
    history: [
      { do: 'reserve one by one', times: 300 },
      { do: 'look', units: 1000 },
      lapse,
      { do: 'look', units: 1000 },
    ],
  },
  'what was reserved before lapses under charge': {
    kind: window,
    settings: releasing,
    history: [{ do: 'reserve', units: 10 }, { do: 'change', settings: charging }, lapse],
  },
  'a counter is reset after a lapse that gave credits back': {
    kind: { ...window, credits: true },
    settings: releasing,
    history: [{ do: 'credit', units: 5 }, { do: 'reserve', units: 15 }, lapse, { do: 'reset' }],
  },
  'a counter is reset after a higher rate gave credits back': {
    kind: { ...window, credits: true },
    settings: charging,
    history: [
      { do: 'credit', units: 5 },
      { do: 'consume', units: 15 },
      { do: 'change', settings: { rate: 20, releases: false } },
      { do: 'reset' },
    ],
  },
  'a reservation is settled after the end of a fixed window': {
    kind: { ...window, algo: 'fixed-window', holdHours: 5 },
    settings: { rate: 20, releases: false },
    history: [
      { do: 'consume', units: 1 },
      { do: 'wait', minutes: 660 },
      { do: 'reserve', units: 5 },
      { do: 'wait', minutes: 61 },
      { do: 'settle', which: 0, units: 10 },
    ],
  },
  'a reservation is settled after a lapse was seen in a fixed window': {
    kind: { ...window, algo: 'fixed-window' },
    settings: { rate: 20, releases: true },
    history: [
      { do: 'reserve', units: 5 },
      lapse,
      { do: 'refund', units: 1 },
      { do: 'consume', units: 4 },
      { do: 'wait', minutes: 600 },
      { do: 'settle', which: 1, units: 6 },
      { do: 'wait', minutes: 61 },
    ],
  },
  'credits are added in a window in which nobody asked, whose anchor a function gives': {
    kind: { ...window, rollover: 0.5, credits: true, anchorHour: 6 },
    settings: charging,
    history: [
      { do: 'consume', units: 1 },
      { do: 'wait', minutes: 961 },
      { do: 'credit', units: 5 },
      { do: 'wait', minutes: 301 },
    ],
  },
  'units are refunded of days of which all came back': {
    kind: window,
    settings: { rate: 100, releases: false },
    history: [
      { do: 'consume', units: 16 },
      day,
      { do: 'consume', units: 3 },
      { do: 'refund', units: 3 },
      day,
      { do: 'consume', units: 3 },
      { do: 'refund', units: 3 },
      day,
      { do: 'refund', units: 6 },
    ],
  },
  'a counter is reset after a lapse that its record does not lack yet': {
    kind: window,
    settings: releasing,
    history: [{ do: 'reserve', units: 4 }, lapse, { do: 'reset' }],
  },
  'what lapses leaves enough to move on for a request that waits': {
    kind: { ...window, rollover: 0.5 },
    settings: releasing,
    history: [
      { do: 'reserve', units: 7 },
      { do: 'look', units: 12 },
    ],
  },
  'no lapse makes room for a request of more than all': {
    kind: { ...window, credits: true },
    settings: releasing,
    history: [
      { do: 'reserve', units: 1 },
      { do: 'refund', units: 1 },
      { do: 'look', units: 11 },
    ],
  },
  'usage is read two windows after a hold lapsed': {
    kind: { ...window, algo: 'budget', rollover: 1 },
    settings: { rate: 100, releases: false },
    history: [{ do: 'reserve', units: 100 }, day, day, { do: 'read' }, day],
  },
  'a finished window is read two windows after a hold came back': {
    kind: { ...window, rollover: 1, retains: true },
    settings: { rate: 100, releases: true },
    history: [{ do: 'reserve', units: 100 }, day, day, { do: 'read' }, day],
  },
  'credits are added after two windows without a request, of which one can be read': {
    kind: { ...window, rollover: 1, credits: true, retains: true },
    settings: { rate: 100, releases: false },
    history: [{ do: 'consume', units: 100 }, day, day, day, { do: 'credit', units: 5 }, day],
  },
  'units are refunded after two windows without a request, of which one can be read': {
    kind: { ...window, rollover: 1, retains: true },
    settings: { rate: 100, releases: false },
    history: [{ do: 'consume', units: 100 }, day, day, day, { do: 'refund', units: 5 }, day],
  },
  'a hold is settled after two windows without a request, of which one can be read': {
    kind: { ...window, rollover: 1, holdHours: 100, retains: true },
    settings: { rate: 100, releases: false },
    history: [{ do: 'reserve', units: 100 }, day, day, day, { do: 'settle', which: 0, units: 5 }, day],
  },
  'the rate is lowered after a refund and before the first charge of a window': {
    kind: { ...window, rollover: 0.5 },
    settings: { rate: 100, releases: false },
    history: [
      { do: 'consume', units: 1 },
      day,
      { do: 'refund', units: 1 },
      { do: 'change', settings: { rate: 10, releases: false } },
    ],
  },
  'the rate is lowered after a late settle and before the first charge of a window': {
    kind: { ...window, rollover: 0.5, holdHours: 30 },
    settings: { rate: 100, releases: true },
    history: [
      { do: 'reserve', units: 1 },
      day,
      { do: 'settle', which: 0, units: 5 },
      { do: 'change', settings: { rate: 10, releases: true } },
    ],
  },
  'the rate is lowered after credits were added and before the first charge of a window': {
    kind: { ...window, rollover: 0.5, credits: true },
    settings: { rate: 100, releases: false },
    history: [
      { do: 'consume', units: 1 },
      day,
      { do: 'credit', units: 5 },
      { do: 'withdraw', units: 5 },
      { do: 'change', settings: { rate: 10, releases: false } },
    ],
  },
  'credits are added under a higher rate than any request was charged under': {
    kind: { ...window, rollover: 0.5, credits: true },
    settings: charging,
    history: [
      { do: 'consume', units: 1 },
      { do: 'change', settings: { rate: 100, releases: false } },
      { do: 'credit', units: 5 },
      day,
      day,
    ],
  },
  'usage is read after the end of a fixed window whose hold nobody settled': {
    kind: { ...window, algo: 'fixed-window', holdHours: 18 },
    settings: { rate: 22, releases: true },
    history: [
      { do: 'reserve', units: 1 },
      { do: 'wait', minutes: 17 * 1440 },
      { do: 'read' },
      { do: 'wait', minutes: 600 },
      { do: 'consume', units: 22 },
    ],
  },
  'units are refunded after the end of a fixed window whose hold nobody settled': {
    kind: { ...window, algo: 'fixed-window', holdHours: 18 },
    settings: { rate: 22, releases: false },
    history: [
      { do: 'reserve', units: 1 },
      { do: 'wait', minutes: 780 },
      { do: 'refund', units: 1 },
      { do: 'wait', minutes: 60 },
      { do: 'consume', units: 22 },
    ],
  },
  'another hold is settled after the end of a fixed window': {
    kind: { ...window, algo: 'fixed-window', holdHours: 18 },
    settings: { rate: 22, releases: false },
    history: [
      { do: 'reserve one by one', times: 2 },
      { do: 'wait', minutes: 780 },
      { do: 'settle', which: 0, units: 5 },
      { do: 'wait', minutes: 60 },
      { do: 'consume', units: 22 },
    ],
  },
};
