/** Figures and tables of the page. */
export const thousands = (value) => `${(value / 1000).toFixed(value < 10_000 ? 1 : 0)} k/s`;
export const micros = (value, digits = 1) => `${value.toFixed(digits)} µs`;
export const percent = (value) => `${(100 * value).toFixed(0)} %`;
export const whole = (value) => value.toLocaleString('en');
export const table = (head, rows) =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
export const capital = (text) => `${text[0].toUpperCase()}${text.slice(1)}`;
