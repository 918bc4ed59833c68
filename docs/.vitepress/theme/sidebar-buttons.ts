import { nextTick, onMounted, watch } from 'vue';
import { useRoute } from 'vitepress';

/** The arrow of a sidebar's group is a button within a button. It does the same as the whole, so screen readers need not know it. */
export function useOneButtonEach(): void {
  const route = useRoute();
  const unmark = async (): Promise<void> => {
    await nextTick();
    for (const arrow of document.querySelectorAll('.VPSidebarItem .caret[role="button"]')) {
      for (const name of ['role', 'tabindex', 'aria-label']) arrow.removeAttribute(name);
    }
  };
  onMounted(() => {
    void unmark();
    watch(() => route.path, unmark, { flush: 'post' });
  });
}
