import { stretchOf, warmUp } from './pace.ts';
import type { Figure, Measurement, Run, Section } from './section.ts';
import { CPU_FIGURES, type SenderOptions, withSender } from './senders.ts';
import { LATENCIES } from './steady.ts';

/** What has been delivered before. */
interface Kept {
    readonly kept: number;
    /** Of these, so many were sent just now, and no table was vacuumed since. */
    readonly sent?: number;
}

const LEAST: Kept = { kept: 500 };
const STRETCH = { rate: 100, seconds: 8 };
/** Rows that one statement adds. */
const AT_ONCE = 100_000;

const FIGURES: Readonly<Record<string, Figure>> = {
    ...LATENCIES,
    p95: { ...LATENCIES.p95, bar: '≤ 1.2 ×' },
    ...CPU_FIGURES,
    cpu: { ...(CPU_FIGURES.cpu as Figure), bar: '≤ 1.1 ×' },
};

/** What an event costs when much has been delivered before: nothing more. */
function keptSection(histories: readonly Kept[], section: Pick<Section, 'name' | 'mostRounds' | 'onRequest'>): Section {
    return {
        ...section,
        discarded: 0,

        async open({ own, scale }) {
            const least = { name: '500 kept', run: withKept({ checkout: own, kind: 'serve' }, LEAST, scale) };
            return {
                measurements: histories.map(
                    (history): Measurement => ({
                        title: `serve, ${STRETCH.rate} events/s, ${nameOf(history)}`,
                        figures: FIGURES,
                        scanwire: async (checkout) => withKept({ checkout, kind: 'serve' }, history, scale),
                        peers: async () => [least],
                    }),
                ),
            };
        },
    };
}

function nameOf({ kept, sent = 0 }: Kept): string {
    const deliveries = `${kept.toLocaleString('en')} deliveries kept`;
    return sent === 0 ? deliveries : `${deliveries}, ${sent.toLocaleString('en')} of them just sent, without autovacuum`;
}

function withKept(options: SenderOptions, { kept, sent = 0 }: Kept, scale: number): Run {
    const [warm, total, waiting] = [LEAST.kept, kept, sent].map((count) => Math.ceil(count * scale)) as [number, number, number];
    return () =>
        withSender(options, async (sender) => {
            await warmUp(sender, warm);
            for (let left = total - warm - waiting; left > 0; left -= AT_ONCE) {
                await sender.store.keep(Math.min(AT_ONCE, left));
            }

            await sender.store.analyze();
            if (waiting > 0) {
                await sender.store.addUnvacuumed(waiting);
                await sender.finished(waiting);
            }

            return stretchOf(sender, STRETCH, scale);
        });
}

export const kept: Section = keptSection([{ kept: 8_000 }, { kept: 100_000 }], { name: 'kept' });

const MILLION: readonly Kept[] = [{ kept: 1_000_000 }, { kept: 1_000_000, sent: 300_000 }];

/** The same, with what a year may leave behind. */
export const keptMillion: Section = keptSection(MILLION, { name: 'kept-million', mostRounds: 3, onRequest: true });
