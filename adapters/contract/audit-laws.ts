import assert from 'node:assert/strict';
import type { AuditEntry, AuditStore } from '../../lib/audit/audit-trail.ts';
import { ids } from './assertions.ts';
import type { ContractFixture, Laws } from './register-laws.ts';

/** For a store of the audit trail. */
export interface AuditStoreFixture extends ContractFixture {
    /** Empty once started. */
    readonly store: AuditStore;
    /** Sets the store's time, which stands still until it is set again. */
    readonly setTime: (time: Date) => void | Promise<void>;
}

const START = Date.UTC(2026, 10, 21, 9, 30, 0, 123);
const DAY = 86_400_000;
const at = (milliseconds: number): Date => new Date(START + milliseconds);

/** Writes that something began then. */
async function begun(
    { store, setTime }: AuditStoreFixture,
    milliseconds: number,
    fields: Partial<AuditEntry> = {},
    keepFor: number | null = null,
): Promise<string> {
    await setTime(at(milliseconds));
    return await store.begin({ actor: 'ada', operation: 'revokeKey', subject: 'k1', ...fields }, keepFor);
}

/** What every `AuditStore` does. */
export const auditLaws: Laws<AuditStoreFixture> = {
    async 'keeps what began, at its own time, without an outcome'(fixture) {
        const id = await begun(fixture, 7, { subject: null, actor: 'Ädà 🔑' });
        const entry = { id, at: at(7), actor: 'Ädà 🔑', operation: 'revokeKey', subject: null, outcome: null };
        assert.deepEqual(await fixture.store.list({ limit: 9 }), [entry]);
    },

    async 'keeps what something came to, and of nothing else'(fixture) {
        const first = await begun(fixture, 0);
        const second = await begun(fixture, 1);
        await fixture.setTime(at(99));
        await fixture.store.complete(first, { outcome: 'NOT_FOUND', subject: 'k2' });
        assert.deepEqual(
            (await fixture.store.list({ limit: 9 })).map((entry) => [entry.id, entry.at, entry.subject, entry.outcome]),
            [
                [second, at(1), 'k1', null],
                [first, at(0), 'k2', 'NOT_FOUND'],
            ],
        );
    },

    async 'lists the newest first, page by page'(fixture) {
        const all = [];
        for (const time of [0, 1, 1, 1, 2]) {
            all.unshift(await begun(fixture, time));
        }
        assert.deepEqual(ids(await fixture.store.list({ limit: 2 })), all.slice(0, 2));
        assert.deepEqual(ids(await fixture.store.list({ limit: 2, after: String(all[1]) })), all.slice(2, 4));
        assert.deepEqual(ids(await fixture.store.list({ limit: 9, after: String(all[3]) })), all.slice(4));
        for (const after of ['999999', 'none', '0', '99999999999999999999999']) {
            assert.deepEqual(await fixture.store.list({ limit: 9, after }), [], after);
        }
    },

    async 'lists those of a time, of somebody and of an operation'(fixture) {
        const first = await begun(fixture, 0, { actor: 'eve' });
        const second = await begun(fixture, 10, { operation: 'createKey' });
        const third = await begun(fixture, 20, { actor: 'eve', operation: 'createKey' });
        for (const [query, found] of [
            [{ since: at(10) }, [third, second]],
            [{ until: at(10) }, [first]],
            [{ since: at(10), until: at(20) }, [second]],
            [{ actor: 'eve' }, [third, first]],
            [{ operation: 'createKey' }, [third, second]],
            [{ actor: 'eve', operation: 'createKey' }, [third]],
            [{ actor: 'eve', after: third }, [first]],
            [{ actor: 'nobody' }, []],
        ] as const) {
            assert.deepEqual(ids(await fixture.store.list({ limit: 9, ...query })), found, JSON.stringify(query));
        }
    },

    async 'forgets what is older than it is to keep, when something begins'(fixture) {
        const old = await begun(fixture, 0);
        const young = await begun(fixture, 1_000);
        const next = await begun(fixture, DAY + 500, {}, null);
        assert.deepEqual(ids(await fixture.store.list({ limit: 9 })), [next, young, old], 'nothing when nothing is said');
        const last = await begun(fixture, DAY + 500, {}, DAY);
        assert.deepEqual(ids(await fixture.store.list({ limit: 9 })), [last, next, young]);
    },
};
