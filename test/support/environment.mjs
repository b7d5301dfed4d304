/**
 * jest's environment for Node with globals as fast as they are outside of jest. Its own context asks a proxy whenever
 * code names `Math`, `Number` or any other global, which took up to two thirds of the time of what computes.
 */
import vm from 'node:vm';
import { TestEnvironment } from 'jest-environment-node';

const { createContext } = vm;
/** A context whose global object is an ordinary one (https://nodejs.org/api/vm.html, `constants.DONT_CONTEXTIFY`). */
const ordinaryContext = () => createContext(vm.constants.DONT_CONTEXTIFY);

export default class Environment extends TestEnvironment {
  constructor(config, context) {
    vm.createContext = ordinaryContext;
    super(config, context);
    vm.createContext = createContext;
    // In a worker these lead to jest, which a command run in this process would take for its launcher
    // (lib/cli/signals.ts).
    delete this.global.process.send;
    delete this.global.process.channel;
  }
}
