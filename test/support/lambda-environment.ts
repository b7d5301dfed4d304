import type { LambdaEnvironment } from '../../lib/drivers/aws/compose/environment.ts';

const CONFIG = { name: 'test', families: ['c5'], vcpus: 8, image: 'debian:stable-slim' };

/** What a deployment gives its functions, where nothing of it is there. */
export function lambdaEnvironment(over: Partial<LambdaEnvironment> & { config?: object } = {}): LambdaEnvironment {
  const { config, ...more } = over;
  return {
    EBB_TABLE: 'table',
    EBB_BUCKET: 'bucket',
    EBB_CLUSTER: 'ebb',
    EBB_LAUNCH_TEMPLATE: 'lt-1',
    EBB_LAUNCH_TEMPLATE_VERSION: '1',
    EBB_SUBNETS: 'us-east-1a=subnet-1',
    EBB_STATE_MACHINE: 'arn:aws:states:us-east-1:000000000000:stateMachine:cycle',
    EBB_TRIGGER_QUEUE: 'http://127.0.0.1:1/000000000000/trigger',
    EBB_REGION: 'us-east-1',
    EBB_CONFIG: JSON.stringify({ ...CONFIG, ...config }),
    EBB_LOG_GROUP: 'tasks',
    EBB_EXECUTION_ROLE: 'arn:aws:iam::000000000000:role/execution',
    EBB_TASK_ROLE: 'arn:aws:iam::000000000000:role/task',
    ...more,
  };
}
