/** The end of a test run: no LocalStack of it is left when jest returns, nor the process that keeps it. */
import { folderOf, running, stop } from '../../scripts/localstack/server.ts';

export default async function end() {
  for (const mode of ['host', 'docker']) {
    const found = running(folderOf(process.pid, mode));
    if (found !== null) await stop(found);
  }
}
