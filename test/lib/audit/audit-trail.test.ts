import t from 'tap';
import { memoryAudit } from '../../../adapters/memory/index.ts';
import { type AuditStore, type AuditTrailOptions, auditTrail } from '../../../lib/audit/audit-trail.ts';
import { ScanwireError } from '../../../lib/errors.ts';

const DEED = { actor: 'ada', operation: 'revokeKey', subject: 'k1' };

function trailed(options: Partial<AuditTrailOptions> = {}) {
    const errors: Error[] = [];
    const store = memoryAudit();
    return { errors, store, trail: auditTrail({ store, onError: (error) => errors.push(error), ...options }) };
}

t.test('writes that something begins before it is done, and what it came to', async (t) => {
    const { trail } = trailed();
    const seen = await trail.record({ ...DEED, made: () => 'k2' }, () => trail.list());
    t.match(seen, [{ ...DEED, outcome: null }]);
    t.match(await trail.list(), [{ ...DEED, subject: 'k2', outcome: 'done' }]);
});

t.test('writes the code of an error, and nothing else of it', async (t) => {
    const { trail } = trailed();
    const known = new ScanwireError('NOT_FOUND', 'There is no such key');
    await t.rejects(
        trail.record(DEED, () => Promise.reject(known)),
        known,
    );
    const other = new Error('password s3cret');
    await t.rejects(
        trail.record(DEED, () => Promise.reject(other)),
        other,
    );
    t.same(
        (await trail.list()).map(({ outcome }) => outcome),
        ['INTERNAL', 'NOT_FOUND'],
    );
    t.notMatch(JSON.stringify(await trail.list()), 's3cret');
});

t.test('does nothing that cannot be written', async (t) => {
    const away = new ScanwireError('UNAVAILABLE', 'The database cannot be reached');
    const store: AuditStore = { ...memoryAudit(), begin: () => Promise.reject(away) };
    let done = 0;
    const act = async (): Promise<void> => {
        done += 1;
    };
    await t.rejects(trailed({ store }).trail.record(DEED, act), away);
    t.equal(done, 0);
});

t.test('says that what something came to could not be written, which is all that is lost', async (t) => {
    const away = new ScanwireError('UNAVAILABLE', 'The database cannot be reached');
    const store: AuditStore = { ...memoryAudit(), complete: () => Promise.reject(away) };
    const { trail, errors } = trailed({ store });
    t.equal(await trail.record(DEED, async () => 7), 7);
    t.same(errors, [away]);
    t.match(await trail.list(), [{ ...DEED, outcome: null }]);
});

t.test('writes texts from outside as somebody can read them', async (t) => {
    const { trail } = trailed();
    await trail.record({ ...DEED, subject: `a\0b\n${'x'.repeat(900)}` }, async () => {});
    const [entry] = await trail.list();
    t.equal(entry?.subject, `a\uFFFDb\uFFFD${'x'.repeat(516)}`);
});

t.test('keeps entries for as long as it is told, 30 days by default', async (t) => {
    for (const [options, expected] of [
        [{}, 30 * 86_400_000],
        [{ keepFor: null }, null],
        [{ keepFor: 86_400_000 }, 86_400_000],
    ] as const) {
        const kept: (number | null)[] = [];
        const store: AuditStore = { ...memoryAudit(), begin: async (_, keepFor) => String(kept.push(keepFor)) };
        await trailed({ store, ...options }).trail.record(DEED, async () => {});
        t.same(kept, [expected]);
    }
});

t.test('refuses options and queries that break a rule', async (t) => {
    for (const keepFor of [1, Number.MAX_SAFE_INTEGER]) {
        t.throws(() => trailed({ keepFor }), { code: 'MISCONFIGURED', field: 'keepFor' });
    }
    t.throws(() => auditTrail({} as AuditTrailOptions), { code: 'MISCONFIGURED', field: 'store' });
    await t.rejects(trailed().trail.list({ limit: 0 }), { code: 'INVALID_INPUT', field: 'limit' });
    await t.rejects(trailed().trail.list({ since: 'yesterday' as unknown as Date }), { code: 'INVALID_INPUT', field: 'since' });
});
