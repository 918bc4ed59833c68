export { columns, printable, printableJson, showCount, showMs, showShare, showTime } from '../util/printable.js';
