import type { JSX } from 'preact';
import { ALGORITHMS, type AlgorithmName, INTERVALS, MOST, ownSettings, type Settings } from '../simulation/settings.js';
import { type Pattern, PATTERNS } from '../simulation/traffic.js';
import { MOST_LOAD } from './attributes.js';
import { nounOf, PATTERN_WORDS, showTime } from './words.js';

interface PatternProps {
  readonly pattern: Pattern;
  readonly onPattern: (pattern: Pattern) => void;
}

/** Which traffic there is. */
export function PatternChoice({ pattern, onPattern }: PatternProps): JSX.Element {
  return (
    <fieldset class="patterns">
      <legend>Traffic</legend>
      <div class="segments">
        {PATTERNS.map((each) => (
          <label key={each}>
            <input
              type="radio"
              name="pattern"
              value={each}
              checked={each === pattern}
              onChange={() => onPattern(each)}
            />
            <span>{PATTERN_WORDS[each].label}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

interface AlgorithmProps {
  readonly offered: readonly AlgorithmName[];
  readonly chosen: readonly AlgorithmName[];
  readonly onAlgorithms: (chosen: AlgorithmName[]) => void;
}

/** Which algorithms are shown: one at least. */
export function AlgorithmChoice({ offered, chosen, onAlgorithms }: AlgorithmProps): JSX.Element {
  const toggle = (name: AlgorithmName) => {
    const others = chosen.filter((each) => each !== name);
    const next = others.length < chosen.length ? others : [...chosen, name];
    onAlgorithms(next.length === 0 ? [name] : ALGORITHMS.filter((each) => next.includes(each)));
  };
  return (
    <fieldset class="algorithms">
      <legend>Algorithms</legend>
      <div class="chips">
        {offered.map((name) => (
          <label key={name}>
            <input type="checkbox" checked={chosen.includes(name)} onChange={() => toggle(name)} />
            <span>{name}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

interface ParameterProps {
  readonly settings: Settings;
  readonly load: number;
  readonly pattern: Pattern;
  /** Those that are shown: parameters that none of them has are left out. */
  readonly chosen: readonly AlgorithmName[];
  readonly onSettings: (changed: Partial<Settings>) => void;
  readonly onLoad: (load: number) => void;
}

const LABELS = {
  burst: 'Burst',
  queue: 'Queue',
  slices: 'Slices',
  limit: 'At once',
  hold: 'Held for',
  estimate: 'Reserved',
} as const;

/** What the limits allow, and how many requests come. */
export function Parameters(props: ParameterProps): JSX.Element {
  const { settings, load, pattern, chosen, onSettings, onLoad } = props;
  const own = (Object.keys(LABELS) as (keyof typeof LABELS)[]).filter((option) =>
    chosen.some((name) => ownSettings(name).includes(option)),
  );
  return (
    <div class="parameters">
      <Slider label="Rate" value={settings.rate} max={MOST.rate} onInput={(rate) => onSettings({ rate })} />
      <label class="field">
        <span class="label">Interval</span>
        <select
          value={settings.interval}
          onChange={({ currentTarget }) => onSettings({ interval: currentTarget.value as Settings['interval'] })}
        >
          {(Object.keys(INTERVALS) as Settings['interval'][]).map((interval) => (
            <option key={interval} value={interval}>
              a {nounOf(interval)}
            </option>
          ))}
        </select>
      </label>
      {pattern !== 'drawn' && (
        <Slider
          label="Load"
          value={load}
          min={10}
          max={MOST_LOAD}
          step={10}
          show={(value) => `${value} % of rate`}
          onInput={onLoad}
        />
      )}
      {own.map((option) => (
        <Slider
          key={option}
          label={LABELS[option]}
          value={settings[option]}
          min={option === 'queue' ? 0 : 1}
          max={MOST[option]}
          {...(option === 'hold' && { show: (value) => showTime(value / 100, settings.interval) })}
          onInput={(value) => onSettings({ [option]: value })}
        />
      ))}
    </div>
  );
}

interface SliderProps {
  readonly label: string;
  readonly value: number;
  readonly min?: number;
  readonly max: number;
  readonly step?: number;
  readonly show?: (value: number) => string;
  readonly onInput: (value: number) => void;
}

function Slider({ label, value, min = 1, max, step = 1, show = String, onInput }: SliderProps): JSX.Element {
  return (
    <label class="field">
      <span class="label">
        {label}
        <span class="value" aria-hidden="true">
          {show(value)}
        </span>
      </span>
      <input
        type="range"
        min={min}
        max={max}
        step={step}
        value={value}
        aria-valuetext={show(value)}
        style={{ '--filled': `${((value - min) / (max - min)) * 100}%` }}
        onInput={({ currentTarget }) => onInput(Number(currentTarget.value))}
      />
    </label>
  );
}
