import { main } from '../lib/cli/main.ts';
import { endWithLauncher } from '../lib/cli/signals.ts';

endWithLauncher();
// A reader that has seen enough (`ebb jobs | head`) closes the pipe: that is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});
process.exitCode = await main(process.argv.slice(2), {
  stdout: process.stdout,
  stderr: process.stderr,
  stdin: process.stdin,
  env: process.env,
  cwd: process.cwd(),
  isOwn: true,
});
