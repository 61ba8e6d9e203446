import type { ExporterSummary } from '../../../lib/webhooks/exporters/exporter-lists.ts';
import { SAMPLE } from './exporter-preview.ts';
import { type Redirect, unlessAbsent, type Visit } from './screen.ts';

/** Below the base: the page that has all the steps. */
export const OVERVIEW_PATH = '/overview';

/** Where a form goes that publishes a sample event. */
export const SAMPLE_PATH = '/overview/sample';

/** Something that whoever is new here has not done yet. */
export interface FirstStep {
    readonly text: string;
    /** Where it is done, below the base. */
    readonly to: string;
    /** What does it, to be typed where the server runs. */
    readonly command?: string;
    /** Where a form goes that does it. */
    readonly action?: string;
}

/** What is left to do of the first steps, the next one first; without what cannot be asked or done here. */
export async function firstSteps(visit: Visit, exporters: readonly ExporterSummary[]): Promise<readonly FirstStep[]> {
    return await stepsAmong(visit, exporters, await anyPublished(visit));
}

/**
 * The step that pages name which are not the overview's. Once an event was published nobody is new here, and nothing is asked any more: a
 * deployment may do without keys for good.
 *
 * @returns Null for none.
 */
export function nextStep(): (visit: Visit) => Promise<FirstStep | null> {
    let isBegun = false;
    return async (visit) => {
        isBegun ||= !visit.offers('diagnose') || (await anyPublished(visit));
        const steps = isBegun ? [] : await stepsAmong(visit, await visit.perform('summarizeExporters', {}), false);
        return steps[0] ?? null;
    };
}

/** Publishes an event that can be told from others by its title. */
export async function publishedSample({ now, perform, texts }: Visit): Promise<Redirect> {
    const { title, description } = texts.overview.sample;
    await perform('publishEvent', { kind: SAMPLE.kind, body: { ...SAMPLE.body, timestamp: now.toISOString(), title, description } });
    return { to: '/deliveries?published' };
}

/** Of the page of an exporter, below the base. */
export function pathOf({ id }: Pick<ExporterSummary, 'id'>): string {
    return `/exporters/${encodeURIComponent(id)}`;
}

/** So many deliveries, the newest, are looked at for one that is no test. */
const LOOKED_AT = 20;

/** Whether there was an event that is no test, for an exporter. */
async function anyPublished({ perform }: Visit): Promise<boolean> {
    const newest = await perform('listDeliveries', { limit: LOOKED_AT });
    return newest.some(({ kind }) => kind !== 'test');
}

async function stepsAmong(
    { perform, texts }: Visit,
    exporters: readonly ExporterSummary[],
    isPublished: boolean,
): Promise<readonly FirstStep[]> {
    const keys = await unlessAbsent(() => perform('listKeys', {}));
    const [first] = exporters;
    const isIdle = exporters.every(({ state }) => state === 'stopped');
    const { start, publish } = texts.overview;
    const command = `scanwire events publish ${SAMPLE.kind} FILE.json`;
    return [
        ...(keys?.length === 0 ? [{ text: texts.keys.create, to: '/keys' }] : []),
        ...(first === undefined ? [{ text: texts.exporters.add, to: '/exporters/new' }] : []),
        ...(first !== undefined && isIdle ? [{ text: start, to: pathOf(first) }] : []),
        ...(isPublished ? [] : [{ text: publish, to: OVERVIEW_PATH, command, ...(!isIdle && { action: SAMPLE_PATH }) }]),
    ];
}
