import { defineComponent, h, onMounted, type VNode } from 'vue';

/** The comparison of algorithms that the playground is made of. It needs a browser, so the built page holds what stands for it until then. */
export const SluiceComparison = defineComponent({
  name: 'SluiceComparison',
  inheritAttrs: false,
  setup(_props, { attrs }) {
    onMounted(() => import('../../../playground/dist/sluice-comparison.js'));
    return (): VNode =>
      h('div', { class: 'comparison' }, [
        h('sluice-comparison', attrs, 'Your browser would show here which requests pass, if it ran scripts.'),
      ]);
  },
});
