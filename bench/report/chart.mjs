/** Charts as SVG, made without a browser. */
import * as echarts from 'echarts';

const WIDTH = 760;

function render(option, height) {
  const chart = echarts.init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height });
  chart.setOption({ animation: false, backgroundColor: '#fff', ...option });
  const svg = chart.renderToSVGString();
  chart.dispose();
  return svg;
}

/** Bars of thousands a second, ours first. */
export function bars(title, results) {
  const rows = results.toReversed();
  return render(
    {
      title: { text: title, left: 'center', textStyle: { fontSize: 14 } },
      grid: { left: 210, right: 60, top: 40, bottom: 30 },
      xAxis: { type: 'value', axisLabel: { formatter: '{value} k/s' } },
      yAxis: { type: 'category', data: rows.map(({ name }) => name) },
      series: [
        {
          type: 'bar',
          data: rows.map(({ name, perSecond }) => ({
            value: Math.round(perSecond / 100) / 10,
            itemStyle: { color: name === 'nestjs-sluice' ? '#1f6feb' : '#9aa5b1' },
          })),
          label: { show: true, position: 'right' },
        },
      ],
    },
    80 + rows.length * 32,
  );
}

/** How decisions a second change with something that grows. */
export function curve(title, points, { xName, log = true }) {
  return render(
    {
      title: { text: title, left: 'center', textStyle: { fontSize: 14 } },
      grid: { left: 70, right: 40, top: 40, bottom: 50 },
      xAxis: { type: log ? 'log' : 'value', name: xName, nameLocation: 'middle', nameGap: 28 },
      yAxis: { type: 'value', name: 'k decisions/s', min: 0 },
      series: [
        {
          type: 'line',
          data: points.map(({ x, perSecond }) => [x, Math.round(perSecond / 100) / 10]),
          label: { show: true, position: 'top' },
          itemStyle: { color: '#1f6feb' },
        },
      ],
    },
    300,
  );
}
