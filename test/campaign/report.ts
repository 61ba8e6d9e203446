import { table } from '../../cli/output/table.ts';
import type { Campaign } from './campaign.ts';
import { grouped } from './ledger.ts';

/** What came of a campaign: one line, then a table of faults with what they led to, then what must not be. */
export async function report({ faults, verdict, failures, folder }: Campaign): Promise<string> {
    const { events, posts, lost, leftOut, duplicates, longestDelay, inFlight } = verdict;
    const uncaused = duplicates.filter(({ cause }) => cause === null).length;
    const lostEvents = new Set(lost.map(({ eventId }) => eventId)).size;
    const seconds = (longestDelay / 1000).toFixed(1);
    const causes = uncaused === 0 ? 'each with its cause' : `${uncaused} without a cause`;
    const summary = `${events} events, ${faults.length} faults, ${lostEvents} lost, ${duplicates.length} duplicates (${causes}), longest delay ${seconds} s`;

    const kinds = grouped(faults, ({ kind }) => kind);
    const rows = [...kinds].toSorted().map(([kind, ofKind]) => {
        const excused = ofKind.filter((fault) => inFlight.has(fault));
        const caused = duplicates.filter(({ cause }) => cause?.kind === kind).length;
        const flying = excused.reduce((sum, fault) => sum + (inFlight.get(fault) ?? 0), 0);
        return [kind, String(ofKind.length), ...(excused.length > 0 ? [String(flying), String(caused)] : ['', ''])];
    });
    const faultTable = await table(['FAULT', 'TIMES', 'IN FLIGHT', 'DUPLICATES'], rows, 'No faults');
    return [
        summary,
        '',
        faultTable,
        '',
        `${posts} POSTs`,
        ...(leftOut > 0 ? [`${leftOut} messages left out of exporters that were stopped`] : []),
        ...failures.map((failure) => `FAILED: ${failure}`),
        ...(folder === null ? [] : [`Logs, journals and examples: ${folder}`]),
        '',
    ].join('\n');
}
