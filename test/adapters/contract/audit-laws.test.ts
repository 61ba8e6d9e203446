import t from 'tap';
import { type AuditStoreFixture, auditLaws } from '../../../adapters/contract/audit-laws.ts';
import { auditStoreContract } from '../../../adapters/contract/index.ts';
import { memoryAudit } from '../../../adapters/memory/index.ts';
import type { AuditStore } from '../../../lib/audit/audit-trail.ts';
import { mapValues, proveLaws } from './laws.ts';
import { tapTest } from './tap-test.ts';

function fixture(): AuditStoreFixture {
    let now = new Date();
    return {
        store: memoryAudit({ clock: () => now }),
        setTime(time) {
            now = time;
        },
    };
}

auditStoreContract(tapTest(t), fixture);

/** One way to break each law. */
const mutants: Record<string, (store: AuditStore) => Partial<AuditStore>> = {
    'keeps what began, at its own time, without an outcome': (store) => ({
        begin: (entry, keepFor) => store.begin({ ...entry, subject: entry.subject ?? '' }, keepFor),
    }),
    'keeps what something came to, and of nothing else': (store) => ({
        complete: async (_, result) => {
            for (const { id } of await store.list({ limit: 9 })) {
                await store.complete(id, result);
            }
        },
    }),
    'lists the newest first, page by page': (store) => ({ list: ({ after: _, ...query }) => store.list(query) }),
    'lists those of a time, of somebody and of an operation': (store) => ({ list: ({ until: _, ...query }) => store.list(query) }),
    'forgets what is older than it is to keep, when something begins': (store) => ({ begin: (entry) => store.begin(entry, null) }),
};

proveLaws(
    t,
    auditStoreContract,
    Object.keys(auditLaws),
    mapValues(mutants, (broken) => () => {
        const honest = fixture();
        return { ...honest, store: { ...honest.store, ...broken(honest.store) } };
    }),
);
