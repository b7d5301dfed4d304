// A service that needs CPU time: it derives a key from a password (PBKDF2), as the one in Tributary, section 2.4.1.
// `HOST` and `PORT` are given by Ebbtide; ITERATIONS sets the work of a request.
import { pbkdf2, randomBytes } from 'node:crypto';
import { createServer } from 'node:http';

const port = Number(process.env.PORT);
const iterations = Number(process.env.ITERATIONS ?? 20_000);
if (!Number.isInteger(port)) throw new Error('PORT is not set: run this by `ebb service apply`');

const server = createServer((request, response) => {
  if (request.url === '/healthz') {
    response.end('ok\n');
    return;
  }
  const salt = randomBytes(16);
  pbkdf2('correct horse battery staple', salt, iterations, 32, 'sha256', (error, key) => {
    response.statusCode = error === null ? 200 : 500;
    response.end(error === null ? `${key.toString('hex')}\n` : 'failed\n');
  });
});
server.listen(port, process.env.HOST ?? '127.0.0.1', () =>
  console.log(`listens on ${port}, ${iterations} iterations a request`),
);

// Requests in flight are answered before the process ends.
process.on('SIGTERM', () => server.close(() => process.exit(0)));
