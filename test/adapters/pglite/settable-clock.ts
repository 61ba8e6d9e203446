/* Preloaded into a process and its threads: from the moment at which the file of CLOCK_FILE is there, the wall clock is off by as many milliseconds as it says. */
import { existsSync, readFileSync } from 'node:fs';

const realNow = Date.now;
const file = process.env.CLOCK_FILE ?? '';
Date.now = () => realNow() + (existsSync(file) ? Number(readFileSync(file, 'utf8')) : 0);
