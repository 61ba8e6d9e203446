import { egressGuard } from '../../../lib/egress/egress-guard.ts';
import { authorityOf, type CaptureTarget } from '../../../lib/records/capture/capture-target.ts';
import { captureRecords } from '../../../lib/records/index.ts';
import type { Call } from '../../call.ts';
import { egressAllowList } from '../../egress-allow-list.ts';
import { openInput } from '../../input.ts';
import { stopSignal } from '../../stop-signal.ts';
import { packs } from '../packs.ts';
import { captureProgress } from './capture-progress.ts';
import { type CaptureReport, captureTally } from './capture-report.ts';
import { capturedSet } from './captured-set.ts';
import { recordFile, recordStream } from './record-output.ts';
import { wantedTargets } from './wanted-targets.ts';

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
    const { targets, output, resume, gzip, connectTo, timeout, ...limits } = given(options);
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

/** Those of the library are passed on by their names, and only when they were given. */
function given(options: Call['options']): CaptureCommandOptions {
    const { json, data, ...own } = options;
    return own as unknown as CaptureCommandOptions;
}

function textOf(target: CaptureTarget): string {
    const url = `https://${authorityOf(target)}${target.path}`;
    return target.address === undefined ? url : `${url} ${target.address}`;
}
