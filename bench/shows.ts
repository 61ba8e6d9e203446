import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';

/** What is asked for, with which key. */
export interface Shown {
    readonly url: string;
    readonly key: string;
    /** The header `Prefer`; none when absent. */
    readonly prefer?: string;
}

export interface Shows {
    /** In milliseconds, in no order. */
    readonly latencies: readonly number[];
    readonly failed: number;
}

const PATIENCE = 10_000;
const CONNECTIONS = { connections: 4, headersTimeout: PATIENCE, bodyTimeout: PATIENCE, connect: { rejectUnauthorized: false } };

/** So many a second, as many in all, whether those before are answered or not, over connections that are kept. */
export function shows(shown: Shown, rate: number, count: number): Promise<Shows> {
    return showing(shown, rate, (index) => index < count);
}

/** The same while the task goes on. */
export async function showsDuring<Result>(
    shown: Shown,
    rate: number,
    task: () => Promise<Result>,
): Promise<Shows & { readonly result: Result }> {
    let isOver = false;
    const over = task().finally(() => {
        isOver = true;
    });
    const [made, result] = await Promise.all([showing(shown, rate, () => !isOver), over]);
    return { ...made, result };
}

async function showing({ url, key, prefer }: Shown, rate: number, isWanted: (index: number) => boolean): Promise<Shows> {
    const dispatcher = new Agent(CONNECTIONS);
    const headers = { token: key, ...(prefer !== undefined && { prefer }) };
    const latencies: number[] = [];
    let failed = 0;
    const show = async (): Promise<void> => {
        const started = performance.now();
        try {
            const { statusCode, body } = await request(url, { dispatcher, headers });
            await body.dump();
            failed += statusCode === 200 ? 0 : 1;
        } catch {
            failed += 1;
        }
        latencies.push(performance.now() - started);
    };

    const started = performance.now();
    const all: Promise<void>[] = [];
    for (let index = 0; isWanted(index); index += 1) {
        await sleep(started + (index * 1000) / rate - performance.now());
        all.push(show());
    }
    await Promise.all(all);
    await dispatcher.close();
    return { latencies, failed };
}
