import type { Theme } from 'vitepress';
import DefaultTheme from 'vitepress/theme';
import { defineComponent, h, type VNode } from 'vue';
import { SluiceComparison } from './comparison.js';
import { HomeComparison, HomeExample, HomeInstall, HomePitch } from './home.js';
import { useOneButtonEach } from './sidebar-buttons.js';
import './style.css';

export default {
  extends: DefaultTheme,
  Layout: defineComponent(() => {
    useOneButtonEach();
    return (): VNode =>
      h(DefaultTheme.Layout, null, {
        'home-hero-info-after': () => h(HomeInstall),
        'home-hero-image': () => h(HomeExample),
        'home-hero-after': () => h(HomePitch),
        'home-features-after': () => h(HomeComparison),
      });
  }),
  enhanceApp({ app }) {
    app.component('SluiceComparison', SluiceComparison);
  },
} satisfies Theme;
