import { h, type VNode } from 'vue';
import { SluiceComparison } from './comparison.js';
import { data as example } from './example.data.js';

/** Beside the title of the first page: the example of the page to start with. */
export const HomeExample = (): VNode => h('div', { class: 'home-example vp-doc', innerHTML: example });

/** What the algorithms do with the same requests, on the first page. */
export const HomeComparison = (): VNode =>
  h('section', { class: 'home-comparison vp-doc', 'aria-labelledby': 'see-what-they-do' }, [
    h('h2', { id: 'see-what-they-do' }, 'The same requests, each algorithm'),
    h(
      'p',
      'This is the code of the library in your browser, by a clock that is moved: which requests pass, which are refused, and what is left. ' +
        'Choose a pattern or draw your own.',
    ),
    h(SluiceComparison, { pattern: 'edge', 'heading-level': '3' }),
  ]);
