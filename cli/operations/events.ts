import type { RuleSet } from '../../lib/webhooks/event-kinds.ts';
import type { Accepted } from '../../lib/webhooks/store.ts';
import { type Operation, operation } from './operation.ts';

export const publishEvent: Operation<{ kind: string; body: unknown; rules?: RuleSet }, Accepted> = operation({
    name: 'events.publish',
    method: 'POST',
    path: '/events/{kind}',
    run: (system, { kind, body, rules }) => system.webhooks.publish(kind, body, rules === undefined ? {} : { rules }),
});
