import { cpus } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { receiver } from '../test/support/bad-receiver.ts';
import { nameServer } from '../test/support/name-server.ts';
import type { Checkout } from './checkout.ts';
import { background } from './processes.ts';
import type { Figure, Figures, Measurement, Run, Section } from './section.ts';
import { type SenderUnderTest, withSender } from './senders.ts';
import { LATENCIES, percentilesOf, steady } from './steady.ts';

/** Exporters beside the one that is measured. */
interface Neighbours {
    readonly title: string;
    readonly count: number;
    /** Events a second that all of them get, or as many as the one that is measured. */
    readonly rate: number | 'as much';
    readonly bodyBytes?: number;
    readonly retries?: number;
    /** Where their receivers are, and who answers for names: also for the `name` of the receiver that is measured, if it has one. */
    open(checkout: Checkout): Promise<Opened>;
}

interface Opened {
    readonly urls: readonly string[];
    readonly nameServer?: string;
    readonly name?: string;
    close(): Promise<void>;
}

const RATE = 200;
/** What the exporter alone may take of the machine, in per cent, so that the neighbours have as much before all together take more than the bar allows. */
const MAX_LOAD_ALONE = 30;
/** Until the neighbours are as bad as they get, and what the stored retries have left the database to do is done: as long in short runs. */
const SETTLING_SECONDS = 12;
const SECONDS = 10;

const FIGURES: Readonly<Record<string, Figure>> = {
    p50: LATENCIES.p50,
    p99: { ...LATENCIES.p99, bar: '≤ 1.3 ×, or + 15' },
    perSecond: { label: 'arrived/s', moreIsBetter: true, bar: '≥ 0.95 ×' },
    load: { label: 'of the machine busy, %', bar: '≤ 60' },
};

const CASES: readonly Neighbours[] = [
    { title: '64 whose name servers never answer', count: 64, rate: 1, open: silentNames },
    { title: '100 that answer after 8 s', count: 100, rate: 0.2, open: answering(8_000) },
    { title: 'one that trickles a byte a second', count: 1, rate: 5, open: trickling },
    { title: 'one with 100,000 retries due that answers after 0.9 s', count: 1, rate: 0, retries: 100_000, open: answering(900) },
    { title: 'one whose bodies are 1 MiB each', count: 1, rate: 2, bodyBytes: 2 ** 20 - 100, open: answering(20) },
    { title: 'one that is dead and gets half of all', count: 1, rate: 'as much', open: dead },
];

/** What an exporter that is well at 200 events a second, or as many as leave the machine room for others, notices of its neighbours. */
export const neighbours: Section = {
    name: 'neighbours',
    discarded: 0,

    async open({ scale, own }) {
        const { load = 0 } = await beside(null, { scale: Math.min(scale, 0.3), rate: RATE }, own)();
        const rate = Math.round(Math.min(RATE, (RATE * MAX_LOAD_ALONE) / load));
        const pace = { scale, rate };
        const alone = { name: 'alone', run: beside(null, pace, own) };
        return {
            measurements: CASES.map(
                (one): Measurement => ({
                    title: `an exporter at ${rate} events/s beside ${one.title}`,
                    figures: FIGURES,
                    scanwire: async (checkout) => beside(one, pace, checkout),
                    peers: async () => [alone],
                }),
            ),
        };
    },
};

interface Pace {
    readonly scale: number;
    /** Events a second of the exporter that is measured. */
    readonly rate: number;
}

function beside(them: Neighbours | null, pace: Pace, checkout: Checkout): Run {
    return async () => {
        const opened = await them?.open(checkout);
        const urls =
            opened === undefined
                ? []
                : Array.from({ length: them?.count ?? 0 }, (_, index) => opened.urls[index % opened.urls.length] as string);
        const where = { urls, nameServer: opened?.nameServer ?? '', name: opened?.name ?? '', retries: them?.retries ?? 0 };
        try {
            return await withSender({ checkout, kind: 'neighbours', neighbours: where }, (sender) => measured(sender, them, pace));
        } finally {
            await opened?.close();
        }
    };
}

async function measured(sender: SenderUnderTest, them: Neighbours | null, { scale, rate }: Pace): Promise<Figures> {
    const noise = new AbortController();
    const noiseRate = them?.rate === 'as much' ? rate : (them?.rate ?? 0);
    const making = noiseRate === 0 ? Promise.resolve() : makeNoise(sender, { ...them, rate: noiseRate }, noise.signal);
    await steady(sender, rate, rate * SETTLING_SECONDS);
    const count = Math.ceil(rate * SECONDS * scale);
    const before = machineTimes();
    const { latencies, seconds } = await steady(sender, rate, count);
    const after = machineTimes();
    noise.abort();
    await making;
    const load = (100 * (after.busy - before.busy)) / (after.all - before.all);
    return { ...percentilesOf(latencies), perSecond: count / seconds, load };
}

/** Of all cores together since the machine was started, in milliseconds. */
function machineTimes(): { readonly busy: number; readonly all: number } {
    const times = cpus().map((core) => core.times);
    const all = times.reduce((sum, { user, nice, sys, idle, irq }) => sum + user + nice + sys + idle + irq, 0);
    return { busy: all - times.reduce((sum, { idle }) => sum + idle, 0), all };
}

async function makeNoise(
    sender: SenderUnderTest,
    { rate, bodyBytes = 100 }: { readonly rate: number; readonly bodyBytes?: number },
    signal: AbortSignal,
): Promise<void> {
    // Its body is made where it is published: in a host events are there, and nobody sends them to it.
    const event = { noise: bodyBytes };
    const accepted: Promise<void>[] = [];
    const started = performance.now();
    for (let index = 0; !signal.aborted; index += 1) {
        accepted.push(sender.publish(event));
        await sleep(started + ((index + 1) * 1000) / rate - performance.now(), undefined, { signal }).catch(() => undefined);
    }
    await Promise.all(accepted);
}

const NO_CONTENT = 'HTTP/1.1 204 No Content\r\n\r\n';

/** In a process of its own: who reads a MiB here is late for the events whose time is taken. */
function answering(after: number): Neighbours['open'] {
    return async (checkout) => {
        const { firstLine, stop } = await background(checkout, 'receiver', { args: [String(after), 'null'] });
        return { urls: [`http://127.0.0.1:${firstLine}/`], close: stop };
    };
}

async function trickling(): Promise<Opened> {
    const { port, close } = await receiver(async (socket, request) => {
        await request();
        for (const byte of NO_CONTENT) {
            await sleep(1_000);
            socket.write(byte);
        }
    });
    return { urls: [`http://127.0.0.1:${port}/`], close };
}

async function dead(): Promise<Opened> {
    const { port, close } = await receiver(() => undefined);
    await close();
    return { urls: [`http://127.0.0.1:${port}/`], close: async () => undefined };
}

/** Of the name that is answered each connection asks anew. */
async function silentNames(): Promise<Opened> {
    const name = 'healthy.test';
    const { address, close } = await nameServer((asked) => (asked === name ? ['127.0.0.1'] : 'silent'), 0);
    const urls = Array.from({ length: 64 }, (_, index) => `http://n${index}.neighbour.test/`);
    return { urls, nameServer: address, name, close };
}
