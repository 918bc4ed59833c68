import { h, type VNode } from 'vue';
import { withBase } from 'vitepress';
import picture from '../../picture.webp';
import { SluiceComparison } from './comparison.js';
import { data as pitch } from './pitch.data.js';

/** Beside the title of the first page: the example of the page to start with. */
export const HomeExample = (): VNode => h('div', { class: 'home-example vp-doc', innerHTML: pitch.example });

/** Below the title: how to install it, and what it costs. */
export const HomeInstall = (): VNode =>
  h('div', { class: 'home-install' }, [
    h('div', { class: 'vp-doc', innerHTML: pitch.install }),
    h('p', [
      h('strong', `${pitch.ofPeers.shared} to ${pitch.ofPeers.quiet} × the decisions`),
      ' of the fastest other library, with 256 checks in flight on Redis. One at a time, a check is slower. ',
      h('a', { href: withBase('/benchmarks.html') }, 'All figures'),
    ]),
  ]);

/** Features for a running app. */
const LIVE = [
  { text: 'Find out why someone is limited, and until when', place: '/guides/explain.html' },
  { text: 'Give one customer a higher rate', place: '/guides/changing-rates.html' },
  { text: 'Deny an attacker, exempt your office', place: '/guides/lists.html' },
  { text: 'Try a stricter limit without rejecting anyone', place: '/guides/shadow-mode.html' },
  { text: 'Get an alert when limits reject more than usual', place: '/guides/observability.html' },
  { text: 'Go back to the rates of yesterday', place: '/guides/changing-rates.html' },
];

/** A picture of it, and the changes of a move. */
export const HomePitch = (): VNode =>
  h('section', { class: 'home-pitch vp-doc' }, [
    h('div', [
      h('h2', { id: 'see-and-change-limits' }, 'See limits, and change them'),
      h('a', { href: withBase('/guides/console.html') }, [
        h('img', {
          src: picture,
          width: 960,
          height: 480,
          alt: 'The console shows what each limit allows and rejects. The playground shows how several algorithms decide the same requests.',
        }),
      ]),
      h('p', 'Without a deploy, and on all instances within 100 ms:'),
      h(
        'ul',
        LIVE.map(({ text, place }) => h('li', [h('a', { href: withBase(place) }, text)])),
      ),
    ]),
    h('div', [
      h('h2', { id: 'move-from-throttler' }, 'Move from @nestjs/throttler'),
      h('div', { innerHTML: pitch.migration }),
      h('p', [h('a', { href: withBase('/migrating-from-throttler.html') }, 'Each option and decorator')]),
    ]),
  ]);

/** The algorithms' decisions about the same requests, on the first page. */
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
