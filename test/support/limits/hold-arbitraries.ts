import fc from 'fast-check';
import { budgetOptions, optionsOf } from './arbitraries.js';

/** A hold that lapses within a window, at its end, or long after it. */
const hold = {
  hold: fc.constantFrom(0.003, 0.5, '1s', '10s', '1m', '1h', '1d'),
  onLapse: fc.constantFrom('charge' as const, 'release' as const),
};

function held<O extends object>(options: fc.Arbitrary<O>) {
  return fc.tuple(options, fc.record(hold)).map(([own, terms]) => ({ ...own, ...terms }));
}

/** Random options of each algorithm whose units can be held. */
export const holdOptions = {
  'fixed-window': held(optionsOf['fixed-window']),
  'calendar-window': fc
    .tuple(held(optionsOf['calendar-window']), fc.constantFrom({}, { retain: '1h' }))
    .map(([own, retain]) => ({ ...own, ...retain })),
  'sliding-window': held(optionsOf['sliding-window']),
  'sliding-log': held(optionsOf['sliding-log']),
  budget: held(budgetOptions),
};
