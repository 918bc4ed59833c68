/** Charts as SVG, made without a browser. */
import * as echarts from 'echarts';

const WIDTH = 760;
const OURS = '#1f6feb';
/** The parts of a bar that has some. */
const OUR_PARTS = [OURS, '#79b0ff'];
const OTHER_PARTS = ['#9aa5b1', '#cdd4db'];
const OTHERS = ['#9aa5b1', '#c08457', '#6b8e63', '#8a6fb0'];

function render(option, height) {
  const chart = echarts.init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height });
  chart.setOption({ animation: false, backgroundColor: '#fff', ...option });
  const svg = chart.renderToSVGString();
  chart.dispose();
  return svg;
}

const titleOf = (text) => ({ text, left: 'center', textStyle: { fontSize: 14 } });
const isOurs = (name) => name.startsWith('nestjs-sluice');
const colorOf = (name, part) => (isOurs(name) ? OUR_PARTS : OTHER_PARTS)[part];
const rounded = (value) => Number(value.toPrecision(3));

/** Bars of `{ name, value }`, ours first. */
export function bars(title, results, unit) {
  const rows = results.toReversed();
  return render(
    {
      title: titleOf(title),
      grid: { left: 210, right: 60, top: 40, bottom: 30 },
      xAxis: { type: 'value', axisLabel: { formatter: `{value} ${unit}` } },
      yAxis: { type: 'category', data: rows.map(({ name }) => name) },
      series: [
        {
          type: 'bar',
          data: rows.map(({ name, value }) => ({
            value: rounded(value),
            itemStyle: { color: name === 'nestjs-sluice' ? OURS : OTHERS[0] },
          })),
          label: { show: true, position: 'right' },
        },
      ],
    },
    80 + rows.length * 32,
  );
}

/** Bars of `{ name, values }`, each made of named parts one after the other. */
export function stackedBars(title, results, parts, unit) {
  const rows = results.toReversed();
  return render(
    {
      title: titleOf(title),
      legend: { show: false },
      grid: { left: 210, right: 60, top: 40, bottom: 50 },
      xAxis: {
        type: 'value',
        name: `${unit} of processor time: ${parts.join(', then ')}`,
        nameLocation: 'middle',
        nameGap: 28,
      },
      yAxis: { type: 'category', data: rows.map(({ name }) => name) },
      series: parts.map((part, index) => ({
        name: part,
        type: 'bar',
        stack: 'all',
        data: rows.map(({ name, values }) => ({
          value: rounded(values[index]),
          itemStyle: { color: colorOf(name, index) },
        })),
        label: { show: true, position: 'inside', formatter: '{c}' },
      })),
    },
    100 + rows.length * 32,
  );
}

/** Bars of thousands a second, ours first. */
export const rateBars = (title, results) =>
  bars(
    title,
    results.map(({ name, perSecond }) => ({ name, value: perSecond / 1000 })),
    'k/s',
  );

/** How figures change with something that grows: a line for each of `{ name, points: [x, y][] }`. */
export function lines(title, series, { xName, yName, log = true, labels = true }) {
  let others = 0;
  return render(
    {
      title: titleOf(title),
      legend: series.length > 1 ? { bottom: 0, itemGap: 24 } : undefined,
      grid: { left: 70, right: 40, top: 40, bottom: series.length > 1 ? 105 : 50 },
      xAxis: { type: log ? 'log' : 'value', name: xName, nameLocation: 'middle', nameGap: 28 },
      yAxis: { type: 'value', name: yName, min: 0 },
      series: series.map(({ name, points }, index) => ({
        name,
        type: 'line',
        data: points.map(([x, y]) => [x, rounded(y)]),
        label: { show: labels, position: 'top' },
        showSymbol: labels,
        itemStyle: { color: index === 0 || isOurs(name) ? OURS : OTHERS[others++ % OTHERS.length] },
        lineStyle: index > 0 && isOurs(name) ? { type: 'dashed' } : {},
      })),
    },
    series.length > 1 ? 360 : 300,
  );
}
