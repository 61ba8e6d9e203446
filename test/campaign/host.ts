/* An application that publishes events as it is asked, also within transactions of its own, and sends like a worker. */

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { InvestigationCreated } from '../../lib/webhooks/events/event-body-types.ts';
import { type Engine, engineSettings, HOST_PATIENCE, runEngine } from './engine.ts';
import { type Accepted, journal, type Publication, TOGETHER, trueTime } from './journal.ts';

const KIND = 'idr_investigation_created';
/** Every second event has an order key, one of half as many. */
const TURNS = 20;
const { accepted: file, ordered } = engineSettings();
const accepted = journal<Accepted>(file);
let turn = 0;
const publishing = new Set<Promise<void>>();

await runEngine({
    role: 'host',
    onMessage(message, engine) {
        const { publish = [] } = message as { readonly publish?: readonly Publication[] };
        for (const publication of publish) {
            const published = accept(publication, engine).catch((error: Error) => {
                process.stderr.write(`Not published: ${error.message}\n`);
            });
            publishing.add(published);
            void published.finally(() => publishing.delete(published));
        }
    },
    async finish() {
        await Promise.race([Promise.all(publishing), sleep(HOST_PATIENCE, undefined, { ref: false })]);
    },
});

async function accept(publication: Publication, { webhooks, pool }: Engine): Promise<void> {
    const from = trueTime();
    if (publication === 'together') {
        const events = Array.from({ length: TOGETHER }, () => ({ kind: KIND, body: investigation(publication), ...nextOrder() }));
        for (const [index, published] of (await webhooks.publishAll(events)).entries()) {
            const { orderKey } = events[index] as (typeof events)[0];
            note(published, { from, ...(orderKey !== undefined && { orderKey }) });
        }
        return;
    }

    const body = investigation(publication);
    const order = nextOrder();
    if (publication === 'alone') {
        note(await webhooks.publish(KIND, body, order), { from, ...order });
        return;
    }

    const client = await pool.connect();
    let broken = false;
    client.on('error', ignore);
    try {
        await statement(client, 'begin');
        const event = await webhooks.publish(KIND, body, { tx: client, ...order });
        await statement(client, publication === 'committed' ? 'commit' : 'rollback');
        if (publication === 'committed') {
            note(event, { from, ...order });
        }
    } catch (error) {
        broken = true;
        throw error;
    } finally {
        client.off('error', ignore);
        client.release(broken);
    }
}

/** What breaks a connection also rejects the statement that needs it. */
function ignore(): void {}

async function statement(client: pg.PoolClient, text: string): Promise<void> {
    const query: pg.QueryConfig & { query_timeout: number } = { text, query_timeout: HOST_PATIENCE };
    await client.query(query);
}

function note({ eventId }: { readonly eventId: string }, more: Pick<Accepted, 'from' | 'orderKey'>): void {
    accepted.write({ eventId, at: trueTime(), ...more });
}

function nextOrder(): Pick<Accepted, 'orderKey'> {
    turn = (turn + 1) % TURNS;
    return ordered && turn % 2 === 0 ? { orderKey: `order ${turn}` } : {};
}

function investigation(publication: Publication): InvestigationCreated {
    const investigationId = randomUUID();
    return {
        timestamp: new Date(trueTime()).toISOString(),
        title: publication,
        link: `https://console.example.com/investigations/${investigationId}`,
        investigationId,
        investigationRrn: `rrn:investigation:eu:0f2b:investigation:${investigationId}`,
        actors: { users: [], assets: [] },
    };
}
