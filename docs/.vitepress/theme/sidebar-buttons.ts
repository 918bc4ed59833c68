import { nextTick, onMounted, watch } from 'vue';
import { useRoute } from 'vitepress';

/** The arrow of a sidebar's group is a button within a button. It does the same as the whole, so screen readers need not know it. */
export function useOneButtonEach(): void {
  const route = useRoute();
  onMounted(() => {
    void unmarkArrows();
    watch(() => route.path, unmarkArrows, { flush: 'post' });
  });
}

async function unmarkArrows(): Promise<void> {
  await nextTick();
  for (const arrow of document.querySelectorAll('.VPSidebarItem .caret[role="button"]')) {
    for (const name of ['role', 'tabindex', 'aria-label']) arrow.removeAttribute(name);
  }
}
