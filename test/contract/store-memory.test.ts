import { MemoryStore } from '../../lib/drivers/sim/memory-store.ts';
import { storeContract } from './store.ts';

storeContract('memory', (retention, nowMs) => Promise.resolve(new MemoryStore(retention, {}, nowMs)), {
  none: 'nothing of it outlives its process',
});
