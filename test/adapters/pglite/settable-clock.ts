/* Preloaded into a process and its threads: the wall clock is an hour behind from the moment at which the file of CLOCK_FILE is there. */
import { existsSync } from 'node:fs';

const realNow = Date.now;
Date.now = () => realNow() - (existsSync(process.env.CLOCK_FILE ?? '') ? 3_600_000 : 0);
