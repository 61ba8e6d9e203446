import { background } from './background.ts';
import { child } from './child.ts';
import { type Medians, rounds } from './rounds.ts';

export interface DeliveryFigures {
    readonly perSecond: number;
    readonly peakMiB: number;
    readonly [figure: string]: number;
}

export const DELIVERIES = { embedded: 1000, servers: 4000 } as const;

export interface DeliveryMedians {
    readonly embedded: Medians<DeliveryFigures>;
    readonly servers: Medians<DeliveryFigures>;
    readonly bare: Medians<DeliveryFigures>;
}

/** Deliveries per second of scanwire and of the bare exporter, to the same receiver. */
export async function measureDeliveries(count: number): Promise<DeliveryMedians> {
    const receiver = await background('receiver.js');
    const url = `http://127.0.0.1:${receiver.firstLine}/hook`;
    try {
        const [embedded, servers, bare] = await rounds<DeliveryFigures>(
            [
                { name: 'embedded', run: () => child('deliveries.js', { args: ['embedded', url, String(DELIVERIES.embedded)] }) },
                { name: 'servers', run: () => child('deliveries.js', { args: ['servers', url, String(DELIVERIES.servers)] }) },
                { name: 'bare', run: () => child('bare-exporter.js', { args: [url, String(DELIVERIES.servers)] }) },
            ],
            count,
        );
        return { embedded, servers, bare } as DeliveryMedians;
    } finally {
        await receiver.stop();
    }
}
