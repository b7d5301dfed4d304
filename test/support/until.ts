const PAUSE_MS = 40;
const PATIENCE_S = 40;

/** Looks again and again until it is so. Throws when it is not long after it should be, on a busy machine too. */
export async function until(done: () => boolean | Promise<boolean>): Promise<void> {
  const patience = performance.now() + PATIENCE_S * 1000;
  while (!(await done())) {
    if (performance.now() > patience) throw new Error(`not within ${PATIENCE_S} s`);
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}
