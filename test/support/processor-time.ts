import { readFileSync } from 'node:fs';

/** Linux counts in hundredths of a second, wherever Node runs. */
const TICKS = 100;

/** A process and what it took of the processor. */
interface Cost {
    readonly name: string;
    /** Of user and system, that of all processes below it included which it has waited for. */
    readonly seconds: number;
}

/**
 * What the processes cost that this one starts, told as they end. Where two end in the same moment the first bears the costs of both. Only Linux
 * tells it; elsewhere nothing costs anything.
 */
export class ProcessorTime {
    readonly #costs: Cost[] = [];
    #known = secondsOfChildren();

    /** To be called as soon as one has ended. @returns What it took. */
    ended(name: string): number {
        const seconds = secondsOfChildren() - this.#known;
        this.#known += seconds;
        this.#costs.push({ name, seconds });
        return seconds;
    }

    /** The costliest, and what all of them took; without lines where that is nothing. */
    report(count: number): readonly string[] {
        const total = this.#costs.reduce((sum, { seconds }) => sum + seconds, 0);
        const costliest = this.#costs.toSorted((a, b) => b.seconds - a.seconds).slice(0, count);
        const lines = costliest.map(({ name, seconds }) => `${seconds.toFixed(1).padStart(6)} s ${name}`);
        return total === 0 ? [] : [...lines, `${total.toFixed(1).padStart(6)} s of the processor in all`];
    }
}

/** Seconds that processes below this one have taken which have ended and were waited for. */
function secondsOfChildren(): number {
    if (process.platform !== 'linux') {
        return 0;
    }

    const stat = readFileSync('/proc/self/stat', 'utf8');
    // Behind the name of the program, which may hold anything, `cutime` and `cstime` are the 14th and the 15th.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[13]) + Number(fields[14])) / TICKS;
}
