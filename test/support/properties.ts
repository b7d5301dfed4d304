/**
 * Runs of a property. Mutation tests run a part of them and do not shrink what fails: each of thousands of mutants runs
 * all tests that reach it, and one failure is enough.
 */
import fc from 'fast-check';

const part = Number(process.env['EBB_PROPERTY_PART'] ?? 1);
if (part < 1) fc.configureGlobal({ endOnFailure: true });

export const runs = (all: number): number => Math.ceil(all * part);

/** How often something must be seen in all runs. Nothing is expected of a part of them. */
export const seenMoreThan = (all: number): number => (part < 1 ? -1 : all);
