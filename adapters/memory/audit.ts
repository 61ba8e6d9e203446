import Joi from 'joi';
import type { AuditEntry, AuditStore } from '../../lib/audit/audit-trail.ts';
import type { Clock } from '../../lib/clock.ts';
import { checked, clockSchema } from '../../lib/schema-validation.ts';

/** How an audit trail in memory is made. */
export interface MemoryAuditOptions {
    readonly clock?: Clock;
}

const optionsSchema: Joi.ObjectSchema<Required<MemoryAuditOptions>> = Joi.object({ clock: clockSchema });

/**
 * The audit trail in memory, for tests and trials: it is gone with the process.
 *
 * @param options.clock The store's time; that of the process by default.
 */
export function memoryAudit(options: MemoryAuditOptions = {}): AuditStore {
    const { clock } = checked(optionsSchema, options, { subject: 'memoryAudit options', code: 'MISCONFIGURED' });
    const entries = new Map<string, AuditEntry>();
    let made = 0;

    return {
        async begin(entry, keepFor) {
            const at = clock();
            for (const { id, at: begun } of entries.values()) {
                if (keepFor !== null && at.getTime() - begun.getTime() > keepFor) {
                    entries.delete(id);
                }
            }
            made += 1;
            const id = String(made);
            entries.set(id, { id, at, ...entry, outcome: null });
            return id;
        },

        async complete(id, result) {
            const entry = entries.get(id);
            if (entry !== undefined) {
                entries.set(id, { ...entry, ...result });
            }
        },

        async list({ since, until, actor, operation, after, limit }) {
            const newestFirst = [...entries.values()].reverse();
            const first = after === undefined ? 0 : newestFirst.findIndex(({ id }) => id === after) + 1;
            const asked = (entry: AuditEntry): boolean =>
                (actor ?? entry.actor) === entry.actor &&
                (operation ?? entry.operation) === entry.operation &&
                (since ?? entry.at) <= entry.at &&
                (until === undefined || entry.at < until);
            return after !== undefined && first === 0 ? [] : structuredClone(newestFirst.slice(first).filter(asked).slice(0, limit));
        },
    };
}
