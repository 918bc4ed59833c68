import type { JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { INTERVALS, type Settings } from '../simulation/settings.js';
import { runUntil, simulate } from '../simulation/simulation.js';
import { arrivalsOf, columnsOf, type Pattern } from '../simulation/traffic.js';
import type { Beginning } from './attributes.js';
import { AlgorithmChoice, Parameters, PatternChoice } from './controls.js';
import { onColours, type Palette, readPalette } from './palette.js';
import { RunCard } from './run-card.js';
import { barsOf } from './run-chart.js';
import { TrafficEditor } from './traffic-editor.js';
import { usePlayback } from './playback.js';
import { nounOf, PATTERN_WORDS, unitOf } from './words.js';

let groups = 0;

/** One traffic for several algorithms, side by side. */
export function Comparison({ begin }: { readonly begin: Beginning }): JSX.Element {
  const [pattern, setPattern] = useState<Pattern>(begin.pattern);
  const [settings, setSettings] = useState<Settings>(begin.settings);
  const [load, setLoad] = useState(begin.load);
  const [seed, setSeed] = useState(1);
  const [drawing, setDrawing] = useState<readonly number[]>();
  const [chosen, setChosen] = useState(begin.algorithms);
  const group = useMemo(() => `sluice-comparison-${++groups}`, []);
  const probe = useRef<HTMLElement>(null);
  const palette = usePalette(probe);
  const playback = usePlayback();

  const interval = INTERVALS[settings.interval].micros;
  const traffic = useMemo(() => {
    const sketch = drawing ?? columnsOf({ pattern: 'burst', rate: settings.rate, interval, load, seed, drawing: [] });
    return { pattern, rate: settings.rate, interval, load, seed, drawing: sketch };
  }, [pattern, settings.rate, interval, load, seed, drawing]);
  const columns = useMemo(() => columnsOf(traffic), [traffic]);
  const charts = useMemo(() => {
    const arrivals = arrivalsOf(traffic);
    const runs = chosen.map((algorithm) => simulate(algorithm, settings, arrivals));
    const bars = runs.map((run) => barsOf(run, interval));
    const tallest = Math.max(1, ...bars.flatMap(({ passed, refused }) => [...passed, ...refused]));
    return runs.map((run) => ({
      run,
      interval,
      tallest,
      unit: unitOf(settings.interval),
    }));
  }, [traffic, settings, chosen]);

  // While it is played, what is still to come is not shown.
  const until = playback.at === undefined ? undefined : playback.at * interval;
  const shownCharts =
    until === undefined ? charts : charts.map((chart) => ({ ...chart, run: runUntil(chart.run, until, interval) }));

  const change = (changed: Partial<Settings>) => {
    const { rate } = settings;
    // What was as large as the rate follows it.
    const follow = (option: 'burst' | 'queue') => (settings[option] === rate ? { [option]: changed.rate } : {});
    const following = changed.rate === undefined ? {} : { ...follow('burst'), ...follow('queue') };
    setSettings({ ...settings, ...following, ...changed });
  };

  return (
    <div class="comparison">
      <i class="probe" ref={probe} />
      <div class="controls">
        <div class="choices">
          <PatternChoice pattern={pattern} onPattern={setPattern} />
          <p class="meaning">{PATTERN_WORDS[pattern].meaning} Drag across the bars to draw other traffic.</p>
          <div class="actions">
            {pattern === 'poisson' && (
              <button type="button" onClick={() => setSeed(seed + 1)}>
                Draw others
              </button>
            )}
            <button type="button" class="play" onClick={playback.toggle}>
              {playback.at === undefined ? 'Play' : 'Stop'}
            </button>
          </div>
        </div>
        <TrafficEditor
          columns={columns}
          rate={settings.rate}
          interval={settings.interval}
          at={playback.at}
          palette={palette}
          onDraw={(drawn) => {
            setDrawing(drawn);
            setPattern('drawn');
          }}
        />
        {begin.controls === 'full' && (
          <Parameters
            settings={settings}
            load={load}
            pattern={pattern}
            chosen={chosen}
            onSettings={change}
            onLoad={setLoad}
          />
        )}
        {begin.controls === 'full' && begin.algorithms.length > 2 && (
          <AlgorithmChoice offered={begin.algorithms} chosen={chosen} onAlgorithms={setChosen} />
        )}
      </div>
      <ul class="legend" aria-label="Legend of the charts">
        <li class="allowed">allowed</li>
        <li class="refused">refused</li>
        <li class="left">units left</li>
        <li class="worst">the {nounOf(settings.interval)} in which most passed</li>
      </ul>
      <div class={`cards ${columnsClass(charts.length)}`}>
        {shownCharts.map((shown) => (
          <RunCard
            key={shown.run.algorithm}
            shown={shown}
            palette={palette}
            settings={settings}
            group={group}
            level={begin.level}
          />
        ))}
      </div>
    </div>
  );
}

/** Cards fill whole rows where they can. */
function columnsClass(cards: number): string {
  return cards === 1 ? 'one' : cards === 3 || cards === 5 || cards === 6 ? 'three' : cards > 3 ? 'many' : '';
}

/** The colours of the style sheet; there are none before it is drawn first. */
function usePalette(probe: { readonly current: HTMLElement | null }): Palette | undefined {
  const [palette, setPalette] = useState<Palette>();
  useEffect(() => {
    const read = () => {
      const next = readPalette(probe.current!);
      setPalette((before) => (JSON.stringify(before) === JSON.stringify(next) ? before : next));
    };
    read();
    return onColours(read);
  }, []);
  return palette;
}
