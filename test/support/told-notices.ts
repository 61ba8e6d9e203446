import { randomUUID } from 'node:crypto';
import type { Test } from 'tap';
import type { ExporterNotice } from '../../lib/webhooks/events/exporter-notices.ts';
import type { NewEvent } from '../../lib/webhooks/events/new-event.ts';
import type { Webhooks } from '../../lib/webhooks/webhooks.ts';
import { type SimulatedDeployment, START, simulatedDeployment } from './simulated-deployment.ts';

/** The kinds of notices, and the URL of what tests let fail. */
export const KINDS: readonly string[] = ['exporter_failing', 'exporter_stopped', 'exporter_recovered'];
export const FAILING = 'http://127.0.0.1/failing';

/** A deployment, and what it has accepted of its exporters. */
export interface Listening {
    readonly deployment: SimulatedDeployment;
    readonly told: readonly NewEvent[];
    readonly kinds: () => readonly string[];
}

/** A deployment that tells what was accepted of exporters. */
export function listening(t: Test): Listening {
    const deployment: SimulatedDeployment = simulatedDeployment(t);
    const told: NewEvent[] = [];
    const { deliveries } = deployment.stores;
    const { accept } = deliveries;
    Object.assign(deliveries, {
        accept: async (newEvents: readonly NewEvent[], options: Parameters<typeof accept>[1]) => {
            const accepted = await accept(newEvents, options);
            told.push(...newEvents.filter(({ event }) => KINDS.includes(event.kind)));
            return accepted;
        },
    });
    return { deployment, told, kinds: () => told.map(({ event }) => event.kind) };
}

/** Adds an exporter of these settings and starts it. @returns Its id. */
export async function add(deployment: SimulatedDeployment, { exporters }: Webhooks, settings: object): Promise<string> {
    const { exporter } = await exporters.create({ url: 'http://127.0.0.1/', ...settings });
    await deployment.finish(exporters.start(exporter.id));
    return exporter.id;
}

/** The kinds of what an exporter was sent, newest first. */
export async function deliveredTo(deployment: SimulatedDeployment, exporterId: string): Promise<readonly string[]> {
    const listed = await deployment.stores.deliveries.list({ exporterId, state: 'delivered', limit: 100 });
    return listed.filter(({ kind }) => kind !== 'test').map(({ kind }) => kind);
}

/** So many notices that an exporter was stopped. */
export function stoppedNotices(count: number, changes: Partial<ExporterNotice> = {}): readonly ExporterNotice[] {
    const facts = { at: new Date(START), failures: 1, failingSince: null, lastOutcome: null, owner: null, reason: 'It is gone' };
    return Array.from({ length: count }, (_, index): ExporterNotice => {
        const ids = { id: randomUUID(), exporterId: randomUUID(), position: index + 1 };
        return { ...ids, kind: 'exporter_stopped', name: 'siem', collector: 'default', ...facts, ...changes };
    });
}

/** Puts notices before all others of the store. @returns Those of them that are not forgotten. */
export function putBefore(
    { stores: { exporters, deliveries } }: SimulatedDeployment,
    first: readonly ExporterNotice[],
): () => readonly ExporterNotice[] {
    const { notices, forgetNotices } = exporters;
    const { keepAlive } = deliveries;
    const count = first.length;
    let kept = first;
    Object.assign(exporters, {
        notices: async (limit: number, after = 0) => {
            const others = (await notices?.(limit, Math.max(0, after - count))) ?? [];
            const moved = others.map((one) => ({ ...one, position: one.position + count }));
            return [...kept.filter(({ position }) => position > after), ...moved].slice(0, limit);
        },
        forgetNotices: async (ids: readonly string[]) => {
            const removed = kept.filter(({ id }) => ids.includes(id));
            kept = kept.filter((one) => !removed.includes(one));
            return [...removed.map(({ id }) => id), ...((await forgetNotices?.(ids)) ?? [])];
        },
    });
    Object.assign(deliveries, {
        keepAlive: (...[session, duration, begun, tell]: Parameters<typeof keepAlive>) =>
            keepAlive(session, duration, begun, (outlook) => tell?.({ ...outlook, notices: outlook.notices || kept.length > 0 })),
    });
    return () => kept;
}
