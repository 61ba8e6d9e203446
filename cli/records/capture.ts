import { egressGuard } from '../../lib/egress/guard.ts';
import { authorityOf } from '../../lib/records/capture/target.ts';
import { type CaptureTarget, captureRecords, type HttpsRecord, parseTarget, readTargetLines } from '../../lib/records/index.ts';
import type { Call } from '../command.ts';
import { openInput } from '../input.ts';
import { stopSignal } from '../stop-signal.ts';
import { egressAllowList } from '../system.ts';
import { type CaptureReport, type CaptureTally, captureTally } from './capture-report.ts';
import { packs } from './files.ts';
import { recordFile, recordStream } from './record-output.ts';

/** The options of the command, as commander gives them. */
export interface CaptureCommandOptions {
    readonly targets?: string;
    readonly output?: string;
    readonly resume?: true;
    readonly gzip?: true;
    readonly connectTo?: string;
    readonly concurrency: number;
    /** Seconds. */
    readonly timeout: number;
    readonly maxBytes: number;
    readonly acceptEncoding?: string;
    readonly userAgent?: string;
}

/** Captures what it is told to, until the end or a signal, and writes each record as it comes in. */
export async function capture({ args, options, json }: Call): Promise<CaptureReport> {
    const { targets, output, resume, gzip, connectTo, timeout, ...limits } = captureOptions(options);
    const guard = egressGuard({ allow: egressAllowList(process.env) });
    const known = capturedSet();
    const tally = captureTally();
    const progress = captureProgress(!json && !(output === undefined && process.stdout.isTTY));
    const list = targets === undefined ? null : await openInput(targets);
    const packed = packs({ output, gzip });
    const records =
        output === undefined
            ? recordStream({ packed })
            : await recordFile(output, { packed, onKept: resume === true ? known.add : undefined });

    const stop = new AbortController();
    void stopSignal().then(() => stop.abort());
    const wanted = wantedTargets({ texts: args, list: list?.source ?? null, connectTo, isKnown: known.has, tally });
    try {
        for await (const result of captureRecords(wanted, { guard, ...limits, timeout: timeout * 1000, signal: stop.signal })) {
            if (result.ok) {
                await records.write(result.record);
                tally.captured();
            } else {
                const { code, message } = result.failure;
                tally.failed({ target: textOf(result.target), code, reason: message });
            }

            progress.count(result.ok);
        }
    } catch (error) {
        if (!stop.signal.aborted) {
            throw error;
        }
    } finally {
        progress.clear();
        await records.close();
        list?.close();
    }

    return tally.report(stop.signal.aborted);
}

/** Those of the library are passed on by their names, and only where they are there. */
function captureOptions(options: Call['options']): CaptureCommandOptions {
    const { json, data, ...own } = options;
    return own as unknown as CaptureCommandOptions;
}

function textOf(target: CaptureTarget): string {
    const url = `https://${authorityOf(target)}${target.path}`;
    return target.address === undefined ? url : `${url} ${target.address}`;
}

export interface WantedTargets {
    /** Of the command line. */
    readonly texts: readonly string[];
    /** A list of more. */
    readonly list: AsyncIterable<Uint8Array> | null;
    /** The address of those that have none of their own. */
    readonly connectTo: string | undefined;
    /** Of targets that need no capture any more. */
    readonly isKnown: (target: CaptureTarget) => boolean;
    readonly tally: CaptureTally;
}

/** The targets to capture, as they are asked for. Bad lines of the list, and what is known, are counted and passed over. */
export async function* wantedTargets({
    texts,
    list,
    connectTo,
    isKnown,
    tally,
}: WantedTargets): AsyncGenerator<CaptureTarget, void, undefined> {
    for await (const listed of allOf(texts, list, tally)) {
        const target = connectTo === undefined ? listed : { address: connectTo, ...listed };
        if (isKnown(target)) {
            tally.skipped();
        } else {
            yield target;
        }
    }
}

async function* allOf(
    texts: readonly string[],
    list: AsyncIterable<Uint8Array> | null,
    tally: CaptureTally,
): AsyncGenerator<CaptureTarget, void, undefined> {
    yield* texts.map(parseTarget);
    for await (const entry of list === null ? [] : readTargetLines(list)) {
        if (entry.ok) {
            yield entry.target;
        } else {
            tally.failed({ target: `line ${entry.line}`, code: 'invalid_target', reason: entry.reason });
        }
    }
}

/** Which targets a file of records answers already. Holds a short text or two for each record. */
export interface CapturedSet {
    add(record: HttpsRecord): void;
    /** A target without an address of its own has been captured at whatever address. */
    has(target: CaptureTarget): boolean;
}

export function capturedSet(): CapturedSet {
    const keys = new Set<string>();
    const keyOf = (host: string, port: number, path: string, ip: string): string => `${ip} ${host} ${port} ${path}`;

    return {
        add({ host, ip, port, path = '/' }) {
            keys.add(keyOf(host, port, path, '')).add(keyOf(host, port, path, ip));
        },
        has: ({ host, port, path, address = '' }) => keys.has(keyOf(host, port, path, address)),
    };
}

/** In milliseconds. */
const EVERY = 250;

export interface CaptureProgress {
    count(ok: boolean): void;
    clear(): void;
}

/** One line on stderr that counts, where a person looks on. */
export function captureProgress(wanted: boolean): CaptureProgress {
    if (!wanted || !process.stderr.isTTY) {
        return { count() {}, clear() {} };
    }

    let [captured, failed, shownAt] = [0, 0, 0];
    return {
        count(ok) {
            captured += ok ? 1 : 0;
            failed += ok ? 0 : 1;
            if (performance.now() - shownAt > EVERY) {
                shownAt = performance.now();
                process.stderr.write(`\r${captured} captured, ${failed} failed`);
            }
        },
        clear() {
            process.stderr.write('\r\u001b[K');
        },
    };
}
