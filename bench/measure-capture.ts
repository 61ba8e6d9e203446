import { background } from './background.ts';
import { child } from './child.ts';
import { type Medians, rounds } from './rounds.ts';

export interface CaptureFigures {
    readonly perSecond: number;
    readonly peakMiB: number;
    readonly [figure: string]: number;
}

/** 2,000 local endpoints, 100 at a time, by `captureRecords` and by a bare `tls.connect` loop. */
export async function measureCapture(count: number): Promise<{ captured: Medians<CaptureFigures>; bare: Medians<CaptureFigures> }> {
    const endpoints = await background('endpoints.js', []);
    try {
        const contenders = ['captured', 'bare'].map((variant) => ({
            name: variant,
            run: () => child<CaptureFigures>('capture-endpoints.js', { args: [variant, endpoints.firstLine] }),
        }));
        const [captured, bare] = await rounds<CaptureFigures>(contenders, count);
        return { captured, bare } as { captured: Medians<CaptureFigures>; bare: Medians<CaptureFigures> };
    } finally {
        await endpoints.stop();
    }
}
