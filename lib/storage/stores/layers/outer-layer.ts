import type { Store } from '../store.js';
import { StoreLayer } from './store-layer.js';

/** A layer above the one that observes: what it adds to a check is observed, and what is inserted is inserted below. */
export abstract class OuterLayer extends StoreLayer {
  override get unobserved(): Store {
    return this.inner instanceof StoreLayer ? this.inner.unobserved : this.inner;
  }

  override insert(layer: (inner: Store) => StoreLayer): void {
    if (this.inner instanceof OuterLayer) this.inner.insert(layer);
    else this.put(layer);
  }
}
