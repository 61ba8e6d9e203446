import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { isUuid } from '../../../lib/schema-validation.ts';
import type { ExporterNotice } from '../../../lib/webhooks/events/exporter-notices.ts';
import { only, present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { at, failure, success, type WebhookBench } from './fixture.ts';

/** What becomes of exporters, kept until it was told. */
export const noticeLaws: Laws<WebhookBench> = {
    async 'notices once that a breaker opens'(bench) {
        const { id: exporterId, collector } = await bench.addExporter();
        await bench.publish({}, {}, {}, {});
        await bench.failInTurn(2, 100);
        assert.deepEqual(await noticesOf(bench), []);
        await bench.failInTurn(1, 200);
        const { id, position, ...notice } = only(await noticesOf(bench));
        assert.ok(isUuid(id), id);
        assert.ok(Number.isSafeInteger(position) && position > 0, String(position));
        assert.deepEqual(notice, {
            exporterId,
            kind: 'exporter_failing',
            at: at(205),
            name: 'siem',
            collector,
            owner: null,
            failures: 3,
            failingSince: at(105),
            reason: null,
            lastOutcome: { code: 'connect_refused', detail: 'it was connect_refused' },
        });
        const probe = only(await bench.claimDue({ now: at(1300) }));
        await bench.record([failure(probe, 0)], at(1301));
        only(await noticesOf(bench));
    },

    async 'notices the first delivered one after a breaker was open, and no other'(bench) {
        await bench.addExporter();
        await bench.publish({}, {}, {}, {}, {}, {});
        const first = only(await bench.claimDue({ now: at(1), limit: 1 }));
        await bench.record([success(first)], at(2));
        await bench.failInTurn(3, 100);
        for (const now of [5000, 7000, 9000]) {
            const [probe] = await bench.claimDue({ now: at(now), limit: 1 });
            await bench.record([success(present(probe))], at(now + 1));
        }
        const notices = await noticesOf(bench);
        assert.deepEqual(kindsOf(notices), ['exporter_failing', 'exporter_recovered']);
        assert.deepEqual(notices[1]?.failingSince, at(105));
        assert.deepEqual([notices[1]?.failures, notices[1]?.lastOutcome?.code], [0, 'delivered']);
    },

    async 'notices that an outcome stops an exporter, and why'(bench) {
        await bench.addExporter();
        await bench.publish({});
        const claimed = only(await bench.claimDue());
        await bench.record([failure(claimed, 0, { stopReason: 'It is gone' })], at(10));
        const { kind, reason } = only(await noticesOf(bench));
        assert.deepEqual([kind, reason], ['exporter_stopped', 'It is gone']);
    },

    async 'notices nothing that a user does, and no recovery before something was delivered'(bench) {
        const { id } = await bench.addExporter();
        await bench.publish({}, {});
        const claimed = only(await bench.claimDue({ limit: 1 }));
        await bench.record([failure(claimed, 3_600_000, { stopReason: 'It is gone' })], at(10));
        await bench.exporters.update(id, { state: 'running', stopReason: null });
        await bench.exporters.update(id, { state: 'stopped', stopReason: null });
        await bench.exporters.update(id, { state: 'running', stopReason: null });
        await bench.publishTest(id, at(3000));
        const test = only((await bench.claimDue({ now: at(3000) })).filter(({ singleAttempt }) => singleAttempt));
        await bench.record([success(test, { health: 'none' })], at(3001));
        assert.deepEqual(kindsOf(await noticesOf(bench)), ['exporter_stopped']);
        await bench.publishAt(at(5000));
        const next = present((await bench.claimDue({ now: at(5000) }))[0]);
        await bench.record([success(next)], at(5001));
        assert.deepEqual(kindsOf(await noticesOf(bench)), ['exporter_stopped', 'exporter_recovered']);
    },

    async 'keeps notices until they are forgotten, oldest first'(bench) {
        const [first, second] = await stoppedInTurn(bench, 2);
        assert.deepEqual([first?.reason, second?.reason], ['Reason 0', 'Reason 1']);
        assert.deepEqual(await bench.exporters.notices?.(1), [first]);
        await bench.exporters.forgetNotices?.([present(first).id]);
        assert.deepEqual(await noticesOf(bench), [second]);
    },

    async 'tells which notices a call has forgotten, each once'(bench) {
        const ids = (await stoppedInTurn(bench, 2)).map(({ id }) => id);
        assert.deepEqual(await bench.exporters.forgetNotices?.([present(ids[0]), randomUUID()]), [ids[0]]);
        assert.deepEqual(await bench.exporters.forgetNotices?.(ids), [ids[1]]);
        assert.deepEqual(await bench.exporters.forgetNotices?.(ids), []);
    },

    async 'gives notices behind a position, also of one that is forgotten'(bench) {
        const [first, second, third] = await stoppedInTurn(bench, 3);
        const behind = async (notice: ExporterNotice | undefined, limit: number) => {
            return await bench.exporters.notices?.(limit, present(notice).position);
        };
        assert.deepEqual(await behind(first, 1), [second]);
        assert.deepEqual(await behind(second, 100), [third]);
        assert.deepEqual(await behind(third, 100), []);
        await bench.exporters.forgetNotices?.([present(first).id, present(second).id]);
        assert.deepEqual(await behind(second, 100), [third]);
        await bench.exporters.forgetNotices?.([present(third).id]);
        const [fourth] = await stoppedInTurn(bench, 1);
        assert.deepEqual(await behind(third, 100), [fourth]);
    },
};

/** What a store does that keeps none. */
export const noNoticesLaws: Laws<WebhookBench> = {
    async 'forgets no notices where it keeps none'({ exporters }) {
        assert.equal(exporters.forgetNotices, undefined);
    },
};

/** The notices of so many new exporters, each stopped after the one before it. */
async function stoppedInTurn(bench: WebhookBench, count: number): Promise<readonly ExporterNotice[]> {
    for (let index = 0; index < count; index += 1) {
        await bench.addExporter();
    }
    await bench.publish({});
    for (const [index, one] of (await bench.claimDue()).entries()) {
        await bench.record([failure(one, 0, { stopReason: `Reason ${index}` })], at(10 + index));
    }
    return await noticesOf(bench);
}

async function noticesOf({ exporters }: WebhookBench): Promise<readonly ExporterNotice[]> {
    return present(await exporters.notices?.(100), 'notices()');
}

function kindsOf(notices: readonly ExporterNotice[]): readonly string[] {
    return notices.map(({ kind }) => kind);
}
