/** Runs as plain data, dealt out to processes one by one. */
import { fork } from 'node:child_process';

/** A file that answers orders when it is started with `--worker`, and how many processes of it run at once. */
export interface Crew {
  readonly script: string;
  readonly procs: number;
}

/** Answers in the order of their arrival. `told` is called for each. */
export async function inProcesses<Order extends object, Answer extends object>(
  { script, procs }: Crew,
  orders: readonly Order[],
  told: (answer: Answer, done: number) => void,
): Promise<readonly Answer[]> {
  const waiting = [...orders];
  const answers: Answer[] = [];
  const work = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const child = fork(script, ['--worker'], { serialization: 'advanced' });
      const next = (): void => {
        const order = waiting.shift();
        if (order !== undefined) child.send(order);
        else {
          child.disconnect();
          resolve();
        }
      };
      child.on('message', (message) => {
        const answer = message as Answer;
        answers.push(answer);
        told(answer, answers.length);
        next();
      });
      child.once('exit', (code) => reject(new Error(`a process ended with code ${code} before its runs`)));
      next();
    });
  await Promise.all(Array.from({ length: Math.min(procs, orders.length) }, work));
  return answers;
}

/** Answers orders from the parent process until it is gone. */
export function answerOrders<Order, Answer extends object>(answerOf: (order: Order) => Promise<Answer>): void {
  process.on('message', (order) => {
    answerOf(order as Order).then(
      (answer) => process.send?.(answer),
      (error: unknown) => {
        console.error(error);
        process.exit(1);
      },
    );
  });
}
