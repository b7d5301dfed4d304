/**
 * Test runner of Stryker that loads the tests once and runs them in one process for one mutant after another. jest
 * loads all modules again for each mutant, which took ten times as long as the tests.
 *
 * It relies on lib/stages keeping no state between calls. A mutant may still break shared objects of tests (a solver).
 * So a failed test must pass again without the mutant; else the process is replaced and the mutant tried again.
 */
import { globSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { InstrumenterContext, StrykerOptions } from '@stryker-mutator/api/core';
import { PluginKind, commonTokens, declareClassPlugin, tokens } from '@stryker-mutator/api/plugin';
import {
  DryRunStatus,
  MutantRunStatus,
  TestStatus,
  determineHitLimitReached,
  type DryRunResult,
  type MutantRunOptions,
  type MutantRunResult,
  type TestResult,
  type TestRunner,
  type TestRunnerCapabilities,
} from '@stryker-mutator/api/test-runner';
import { collect, collected, type CollectedTest } from './collected-tests.ts';

/** State of instrumented code: the active mutant, and counts. */
const context: InstrumenterContext = ((globalThis as { __stryker__?: InstrumenterContext }).__stryker__ ??= {});

class InProcess implements TestRunner {
  static readonly inject = tokens(commonTokens.options);
  readonly #patterns: readonly string[];
  /** Milliseconds of each test's last run: quick tests run first. */
  readonly #took = new Map<CollectedTest, number>();

  constructor({ testFiles }: StrykerOptions) {
    this.#patterns = testFiles;
  }

  /** Mutants of load-time code are left out (`ignoreStatic`), so nothing needs loading again. */
  capabilities(): TestRunnerCapabilities {
    return { reloadEnvironment: true };
  }

  async init(): Promise<void> {
    const standIn = new URL('collected-tests.ts', import.meta.url).href;
    registerHooks({
      resolve: (name, of, next) => (name === '@jest/globals' ? { url: standIn, shortCircuit: true } : next(name, of)),
    });
    for (const path of globSync(this.#patterns).sort()) await collect(pathToFileURL(path), resolve(path));
  }

  async dryRun(): Promise<DryRunResult> {
    const tests: TestResult[] = [];
    for (const test of collected) {
      context.currentTestId = test.id;
      const failure = await this.#failureOf(test);
      delete context.currentTestId;
      const { id, file: fileName, startPosition } = test;
      const result = { id, name: id, fileName, startPosition, timeSpentMs: this.#took.get(test) ?? 0 };
      if (failure === null) tests.push({ ...result, status: TestStatus.Success });
      else tests.push({ ...result, status: TestStatus.Failed, failureMessage: failure });
    }
    const { mutantCoverage } = context;
    delete context.mutantCoverage;
    return { status: DryRunStatus.Complete, tests, ...(mutantCoverage === undefined ? {} : { mutantCoverage }) };
  }

  async mutantRun({ activeMutant, testFilter, hitLimit }: MutantRunOptions): Promise<MutantRunResult> {
    const wanted = collected
      .filter(({ id }) => testFilter?.includes(id) ?? true)
      .toSorted((a, b) => (this.#took.get(a) ?? 0) - (this.#took.get(b) ?? 0));
    for (const [index, test] of wanted.entries()) {
      Object.assign(context, { activeMutant: activeMutant.id, hitCount: 0, hitLimit });
      const failure = await this.#failureOf(test);
      const looped = determineHitLimitReached(context.hitCount, hitLimit);
      for (const key of ['activeMutant', 'hitCount', 'hitLimit'] as const) delete context[key];
      if (failure === null && looped === undefined) continue;
      const again = await this.#failureOf(test);
      if (again !== null) throw new Error(`"${test.id}" fails after a mutant is gone: ${again}`);
      if (looped !== undefined) return { status: MutantRunStatus.Timeout, reason: looped.reason ?? '' };
      return {
        status: MutantRunStatus.Killed,
        killedBy: [test.id],
        failureMessage: failure ?? '',
        nrOfTests: index + 1,
      };
    }
    return { status: MutantRunStatus.Survived, nrOfTests: wanted.length };
  }

  async #failureOf(test: CollectedTest): Promise<string | null> {
    const from = performance.now();
    try {
      await test.run();
      return null;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    } finally {
      this.#took.set(test, performance.now() - from);
    }
  }
}

export const strykerPlugins = [declareClassPlugin(PluginKind.TestRunner, 'in-process', InProcess)];
