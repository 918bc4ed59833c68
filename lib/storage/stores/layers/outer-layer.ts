import type { Store } from '../store.js';
import { StoreLayer } from './store-layer.js';

/** A layer above the observing one, so that entries that it adds to a check are observed. Inserted layers go below. */
export abstract class OuterLayer extends StoreLayer {
  override get unobserved(): Store {
    return this.inner instanceof StoreLayer ? this.inner.unobserved : this.inner;
  }

  override insert(layer: (inner: Store) => StoreLayer): void {
    if (this.inner instanceof OuterLayer) this.inner.insert(layer);
    else this.put(layer);
  }
}
