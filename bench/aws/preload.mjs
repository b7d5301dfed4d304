/**
 * Preloaded module of every function in a metered rehearsal (NODE_OPTIONS=--import). It writes one line per answer of
 * the worker (scripts/localstack/lambda/worker.mjs): processor time since the last answer, and bytes printed. The first
 * line is the loading of the function. The SDK's user agent then names function and process for the meter.
 */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { isMainThread } from 'node:worker_threads';

const { METER_FOLDER: folder, AWS_LAMBDA_FUNCTION_NAME: name = '' } = process.env;

/**
 * Warnings of the SDK caused by the meter. They concern the name in the user agent, to which Powertools adds, and the
 * address in front of the queue's.
 */
const isOfMeter = (text) => /userAgentAppId exceeds|differs from SQSClient resolved endpoint/.test(text);

if (isMainThread && folder !== undefined && process.argv[1]?.endsWith('worker.mjs') === true) {
  process.env.AWS_SDK_UA_APP_ID = `${name.slice(0, 40)}..${process.pid}`;
  const file = join(folder, `${name}-${process.pid}.jsonl`);
  const answers = Number(process.argv[3]);
  const memoryMiB = Number(process.env.AWS_LAMBDA_FUNCTION_MEMORY_SIZE);
  let printed = 0;
  let cpu = { user: 0, system: 0 };
  for (const stream of [process.stdout, process.stderr]) {
    const write = stream.write.bind(stream);
    stream.write = (chunk, ...rest) => {
      if (!isOfMeter(String(chunk))) printed += Buffer.byteLength(chunk);
      return write(chunk, ...rest);
    };
  }
  const writeSync = fs.writeSync.bind(fs);
  fs.writeSync = (fd, ...rest) => {
    if (fd === answers) {
      // Time of all threads of the process, with that of the solver.
      const now = process.cpuUsage();
      const cpuMs = (now.user + now.system - cpu.user - cpu.system) / 1000;
      fs.appendFileSync(file, `${JSON.stringify({ name, memoryMiB, cpuMs, printed, atMs: Date.now() })}\n`);
      printed = 0;
      cpu = process.cpuUsage();
    }
    return writeSync(fd, ...rest);
  };
  syncBuiltinESMExports();
}
