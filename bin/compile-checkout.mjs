// Makes the compiled copy of the checkout named as the argument and prints its folder: see checkout.mjs.
import { makeCopy } from './checkout.mjs';

process.stdout.write(makeCopy(process.argv[2]));
