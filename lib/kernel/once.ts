/**
 * Made when it is first asked for; what it is made from is then let go. A constant of a module where `make` is pure: no
 * start of a process waits for what it may not need.
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
