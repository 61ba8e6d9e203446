import { egressGuard } from '../../lib/egress/guard.ts';
import { authorityOf } from '../../lib/records/capture/target.ts';
import {
    type CaptureManyOptions,
    type CaptureTarget,
    captureRecords,
    type HttpsRecord,
    parseTarget,
    readTargetLines,
} from '../../lib/records/index.ts';
import type { Call } from '../command.ts';
import { receiversIn } from '../deployment.ts';
import { openInput } from '../input-file.ts';
import { stopSignal } from '../stop-signal.ts';
import { recordFile, recordStream } from './capture-output.ts';
import { type CaptureReport, captureProgress, countFailure } from './capture-report.ts';
import { packs, shows } from './record-files.ts';

/** The options of the command, as commander gives them; those of the library go on to it by their names. */
interface CaptureCommandOptions extends Pick<CaptureManyOptions, 'concurrency' | 'maxBytes' | 'acceptEncoding' | 'userAgent'> {
    readonly json?: true;
    readonly data: string;
    readonly targets?: string;
    readonly output?: string;
    readonly resume?: true;
    readonly gzip?: true;
    readonly connectTo?: string;
    /** Seconds. */
    readonly timeout: number;
}

/** Captures what it is told to, until the end or a signal, and writes each record as it comes in. */
export async function runCapture({ args, options }: Call): Promise<CaptureReport> {
    const own = options as unknown as CaptureCommandOptions;
    const { json, data: _, targets, output, resume, gzip, connectTo, timeout, ...limits } = own;
    const { egress = { allow: [] }, resolver } = receiversIn(process.env);
    const guard = egressGuard(egress);
    const names = resolver === undefined ? {} : { resolver };
    const report: CaptureReport = { captured: 0, failed: 0, skipped: 0, failures: [], stopped: false };
    const progress = captureProgress(!json && !(output === undefined && process.stdout.isTTY));
    const list = targets === undefined ? null : await openInput(targets);
    const packed = packs({ output, gzip });
    const known = new Set<string>();
    const onKept = resume === true ? (record: HttpsRecord) => remember(known, record) : undefined;
    const records =
        output === undefined ? recordStream({ packed, printable: shows(options) }) : await recordFile(output, { packed, onKept });

    async function* wanted(): AsyncGenerator<CaptureTarget, void, undefined> {
        for await (const listed of listedTargets(args, list?.source ?? null, report)) {
            const target = connectTo === undefined ? listed : { address: connectTo, ...listed };
            if (known.has(keyOf(target))) {
                report.skipped += 1;
            } else {
                yield target;
            }
        }
    }

    const stop = new AbortController();
    void stopSignal().then(() => stop.abort());
    try {
        for await (const result of captureRecords(wanted(), { guard, ...names, ...limits, timeout: timeout * 1000, signal: stop.signal })) {
            if (result.ok) {
                await records.write(result.record);
                report.captured += 1;
            } else {
                const { code, message } = result.failure;
                countFailure(report, { target: textOf(result.target), code, reason: message });
            }

            progress.show(report);
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

    report.stopped = stop.signal.aborted;
    return report;
}

function textOf(target: CaptureTarget): string {
    const url = `https://${authorityOf(target)}${target.path}`;
    return target.address === undefined ? url : `${url} ${target.address}`;
}

/** The targets of the command line and of a list, as they are asked for; the bad lines of the list go to the report. */
async function* listedTargets(
    texts: readonly string[],
    list: AsyncIterable<Uint8Array> | null,
    report: CaptureReport,
): AsyncGenerator<CaptureTarget, void, undefined> {
    yield* texts.map(parseTarget);
    for await (const entry of list === null ? [] : readTargetLines(list)) {
        if (entry.ok) {
            yield entry.target;
        } else {
            countFailure(report, { target: `line ${entry.line}`, code: 'invalid_target', reason: entry.reason });
        }
    }
}

function keyOf({ host, port, path, address = '' }: CaptureTarget): string {
    return `${address} ${host} ${port} ${path}`;
}

/** A target without an address of its own has been captured at whatever address. */
function remember(known: Set<string>, { host, ip, port, path = '/' }: HttpsRecord): void {
    known.add(keyOf({ host, port, path })).add(keyOf({ host, port, path, address: ip }));
}
