import { MemoryStore } from '../../lib/sim/memory-store.ts';
import { storeContract } from './store.ts';

storeContract('memory', (retention) => Promise.resolve(new MemoryStore(retention)));
