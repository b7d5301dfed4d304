/**
 * Lazy value: `make` runs on first use and is then released. At the top of a module `make` is pure, and no process pays
 * at its start for a value that it may not need.
 */
export function once<T>(make: () => T): () => T {
  let source: (() => T) | null = make;
  let made: T | null = null;
  return () => {
    if (source !== null) {
      made = source();
      source = null;
    }
    return made as T;
  };
}
