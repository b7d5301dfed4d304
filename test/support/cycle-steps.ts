import { handler as act } from '../../lambdas/act/handler.ts';
import { handler as confirm } from '../../lambdas/confirm/handler.ts';
import { handler as estimate } from '../../lambdas/estimate/handler.ts';
import { handler as forecast } from '../../lambdas/forecast/handler.ts';
import { handler as isolate } from '../../lambdas/isolate/handler.ts';
import { handler as snapshot } from '../../lambdas/snapshot/handler.ts';
import { handler as record } from '../../lambdas/record/handler.ts';
import { handler as solve } from '../../lambdas/solve/handler.ts';
import { provideDeployment, type Deployment } from '../../lib/drivers/aws/compose/deployment.ts';
import { invoke } from '../unit/drivers/aws/lambda.ts';
import type { Step } from './stepped-engine.ts';

const HANDLERS: Readonly<Record<Step, unknown>> = {
  snapshot,
  estimate,
  forecast,
  solve,
  isolate,
  record,
  act,
  confirm,
};

/** One step, in the process that has this deployment. */
export async function stepIn<T>(deployment: Deployment, step: Step, event: unknown): Promise<T> {
  provideDeployment(deployment);
  return invoke<T>(HANDLERS[step], event);
}
