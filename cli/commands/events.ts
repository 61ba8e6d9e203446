import type { Command } from 'commander';
import type { EventSummary } from '../../lib/webhooks/events/new-event.ts';
import type { PublishOptions } from '../../lib/webhooks/events/unrouted-event.ts';
import { RULE_SETS } from '../../lib/webhooks/setting-values.ts';
import { command, definedFields } from '../command.ts';
import { readJson } from '../input-file.ts';
import { addConfig } from '../option-values.ts';
import { aligned, utcTime } from '../output/table.ts';

export function define(events: Command): void {
    const publish = command(events, 'publish <kind> <file>', 'publish the body in a JSON file, - for stdin', async (call) => {
        const [kind = '', file = ''] = call.args;
        const { rules, owner, idempotencyKey, orderKey } = call.options;
        const options = definedFields<Omit<PublishOptions, 'tx'>>({ rules, owner, idempotencyKey, orderKey });
        const accepted = await call.perform('publishEvent', { kind, body: await readJson(file), ...options });
        return { json: accepted, text: () => acceptedText(accepted.eventId, accepted.deliveries.length) };
    });
    publish
        .option('--owner <owner>', "whose it is; the deployment's own otherwise")
        .option('--idempotency-key <key>', 'of yours: repeated with it, the event is accepted once')
        .option('--order-key <key>', 'of yours: exporters that are ordered get the events of a key one after another')
        .addOption(publish.createOption('--rules <set>', 'rule set that raised the investigation').choices(RULE_SETS));
    addConfig(publish);

    command(events, 'show <id>', 'show an event without its body', async ({ args: [id = ''], perform }) => {
        const event = await perform('showEvent', { id });
        return { json: event, text: () => eventFacts(event) };
    });

    command(events, 'erase <id>', 'erase the body of an event for good', async ({ args: [id = ''], perform }) => {
        const erased = await perform('eraseEvent', { id });
        return { json: erased, text: () => `Erased the body of ${erased.id}: ${deliveriesText(erased.ended)} ended by it` };
    });
}

function acceptedText(eventId: string, deliveries: number): string {
    return `Accepted ${eventId}: ${deliveries === 0 ? 'no running exporter wants it' : deliveriesText(deliveries)}`;
}

function deliveriesText(count: number): string {
    return `${count} ${count === 1 ? 'delivery' : 'deliveries'}`;
}

function eventFacts({ id, kind, createdAt, erasedAt }: EventSummary): Promise<string> {
    return aligned([
        ['Id', id],
        ['Kind', kind],
        ['Created', utcTime(createdAt)],
        ['Body', erasedAt === null ? 'there' : `erased at ${utcTime(erasedAt)}`],
    ]);
}
