import { render } from 'preact';
import { App } from './app.js';
import { apply } from './data/theme.js';

apply();
render(<App />, document.getElementById('app')!);
