import type { Command } from 'commander';
import { RULE_SETS, type RuleSet } from '../../lib/webhooks/choices.ts';
import { command, definedFields } from '../command.ts';
import { readJson } from '../input.ts';

export function define(events: Command): void {
    const publish = command(events, 'publish <kind> <file>', 'publish the body in a JSON file, - for stdin', async (call) => {
        const [kind = '', file = ''] = call.args;
        const { rules, owner, idempotencyKey } = call.options;
        const options = definedFields<{ rules: RuleSet; owner: string; idempotencyKey: string }>({ rules, owner, idempotencyKey });
        const accepted = await call.perform('publishEvent', { kind, body: await readJson(file), ...options });
        return { json: accepted, text: () => acceptedText(accepted.eventId, accepted.deliveries.length) };
    });
    publish
        .option('--owner <owner>', "whose it is; the deployment's own otherwise")
        .option('--idempotency-key <key>', 'of yours: repeated with it, the event is accepted once')
        .addOption(publish.createOption('--rules <set>', 'rule set that raised the investigation').choices(RULE_SETS));
}

function acceptedText(eventId: string, deliveries: number): string {
    const recipients = deliveries === 0 ? 'no running exporter wants it' : `${deliveries} ${deliveries === 1 ? 'delivery' : 'deliveries'}`;
    return `Accepted ${eventId}: ${recipients}`;
}
