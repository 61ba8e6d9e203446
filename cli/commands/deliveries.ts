import type { Command } from 'commander';
import { DELIVERY_STATES, type Delivery, type DeliveryState } from '../../lib/webhooks/store.ts';
import type { AttemptView } from '../../plugins/admin-console/operations.ts';
import { command, wholeNumber } from '../command.ts';
import { facts, relativeTime, table } from '../output/table.ts';
import { timesText } from '../output/test-result.ts';

export function define(deliveries: Command): void {
    const list = command(deliveries, 'list', 'list deliveries, newest first', async ({ options, perform }) => {
        const { state, exporter, after, limit } = options as { state?: DeliveryState; exporter?: string; after?: string; limit: number };
        const filter = { state, exporterId: exporter, after, limit };
        const found = await perform(
            'listDeliveries',
            Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined)),
        );
        return { json: found, text: () => deliveriesTable(found) };
    });
    list.addOption(list.createOption('--state <state>', 'only those in this state').choices(DELIVERY_STATES))
        .option('--exporter <id>', 'only those to this exporter')
        .option('--after <id>', 'continue below this delivery')
        .option('--limit <n>', 'at most so many', wholeNumber(1, 1000), 100);

    command(deliveries, 'show <id>', 'show a delivery with its attempts', async ({ args: [id = ''], perform }) => {
        const delivery = await perform('showDelivery', { id });
        return {
            json: delivery,
            text: async () => `${await facts(factsOf(delivery))}\n\n${await attemptsTable(delivery.history)}`,
        };
    });

    command(deliveries, 'replay <id>', 'send a finished delivery once more', async ({ args: [id = ''], perform }) => {
        const delivery = await perform('replayDelivery', { id });
        return { json: delivery, text: () => `Replaying ${delivery.id}: ${delivery.state}` };
    });
}

function deliveriesTable(deliveries: readonly Delivery[]): Promise<string> {
    return table(
        ['ID', 'KIND', 'EXPORTER', 'STATE', 'ATTEMPTS', 'LAST', 'CREATED'],
        deliveries.map(({ id, kind, exporterId, state, attempts, lastCode, createdAt }) => [
            id,
            kind,
            exporterId,
            state,
            String(attempts),
            lastCode ?? '',
            relativeTime(createdAt, new Date()),
        ]),
        'No deliveries.',
    );
}

function factsOf({
    id,
    eventId,
    kind,
    exporterId,
    collector,
    state,
    dueAt,
    createdAt,
    finishedAt,
}: Delivery): readonly (readonly [string, string])[] {
    const now = new Date();
    return [
        ['Id', id],
        ['Event', `${eventId} (${kind})`],
        ['Exporter', `${exporterId} on ${collector}`],
        ['State', state],
        ['Created', relativeTime(createdAt, now)],
        finishedAt === null ? ['Due', relativeTime(dueAt, now)] : ['Finished', relativeTime(finishedAt, now)],
    ];
}

function attemptsTable(attempts: readonly AttemptView[]): Promise<string> {
    return table(
        ['ATTEMPT', 'STARTED', 'STATUS', 'OUTCOME', 'TOOK', 'DETAIL'],
        attempts.map(({ number, startedAt, status, code, timings, detail }) => [
            String(number),
            relativeTime(startedAt, new Date()),
            String(status ?? ''),
            code ?? 'under way',
            timings === null ? '' : timesText(timings).replace(/^in /, ''),
            detail ?? '',
        ]),
        'No attempts yet.',
    );
}
