import { describe, it } from '@jest/globals';

/** Where this is set, tests that need more than npm's packages must run; elsewhere they are left out, loudly. */
const isRequired = isSet('EBB_REQUIRE_LOCALSTACK') || isSet('CI');

export function isSet(name: string): boolean {
  const value = process.env[name];
  return value !== undefined && value !== '' && value !== '0' && value !== 'false';
}

/** In the place of tests that cannot run here: skipped with a message, or one failure where they must run. */
export function describeMissing(name: string, missing: string, tests: () => void): void {
  if (isRequired) {
    it(`${name}: must run`, () => {
      throw new Error(`these tests must run here (CI or EBB_REQUIRE_LOCALSTACK is set) and cannot: ${missing}`);
    });
  } else {
    console.warn(`NOT TESTED: ${name}: ${missing}.`);
    describe.skip(name, tests);
  }
}
