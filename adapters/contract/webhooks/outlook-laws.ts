import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Claim } from '../../../lib/webhooks/deliveries/delivery-store.ts';
import type { Outlook } from '../../../lib/webhooks/dispatching/outlook.ts';
import { only, present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { at, BEGIN_WITHIN, failure, holderOf, RULES, SETTINGS, success, type WebhookBench } from './fixture.ts';

/** What a store tells of what there is to do, if it does: what it rules out is not there. */
export const outlookLaws: Laws<WebhookBench> = {
    async 'tells with a heartbeat whether anything is in flight'(bench) {
        await bench.addExporter();
        await assertTold(bench, { inFlight: false }, 'in an empty store');
        await bench.publish({}, {});
        await assertTold(bench, { inFlight: false }, 'while all of it waits');
        const [first, second] = await bench.dispatchedIds();
        await assertTold(bench, { inFlight: true }, 'queued');
        const [one, other] = await bench.claim([present(first), present(second)]);
        await assertTold(bench, { inFlight: true }, 'being sent');
        await bench.record([success(present(one))]);
        await assertTold(bench, { inFlight: true }, 'the other one is');
        await bench.record([failure(present(other), 1_000)]);
        await assertTold(bench, { inFlight: false }, 'delivered, and waiting for the next try');
    },

    async 'tells that something is in flight that was handed out when it was accepted, also once a session has begun it'(bench) {
        await bench.addExporter();
        const [accepted] = await bench.acceptAtOnce();
        await assertTold(bench, { inFlight: true }, 'handed out');
        const { deliveryId, token } = holderOf(only(present(accepted).handedOut));
        const attempts = [{ deliveryId, token, claimedAt: at(1), duration: 60_000 }];
        await bench.deliveries.keepAlive(newSession(), 1_000, { upTo: at(1), attempts });
        await assertTold(bench, { inFlight: true }, 'begun');
    },

    async 'tells of which generation the settings are'(bench) {
        await assertTold(bench, { settings: 0 });
        const { generation } = await bench.settings.declare(SETTINGS);
        await assertTold(bench, { settings: generation });
    },

    async 'tells that something was accepted since'(bench) {
        await bench.addExporter();
        const numbers = [(await told(bench))?.accepted];
        for (const _ of [1, 2]) {
            await bench.publish();
            numbers.push((await told(bench))?.accepted);
        }
        await bench.acceptAtOnce();
        numbers.push((await told(bench))?.accepted);
        assert.equal(new Set(numbers).size, numbers[0] === undefined ? 1 : numbers.length, numbers.join());
    },

    async 'tells whether a replay is unfinished'(bench) {
        const { replays } = bench.deliveries;
        if (replays === undefined) {
            return;
        }
        const { id: exporterId } = await bench.addExporter();
        await bench.publish({}, {});
        await bench.fail(await bench.claimDue(), at(50), { next: { state: 'exhausted' }, health: 'none' });
        await assertTold(bench, { replays: false });
        await bench.setTime(at(5_000));
        await replays.plan({ id: randomUUID(), exporterId, failedSince: at(0), rate: 1 });
        await assertTold(bench, { replays: true });
        assert.equal(await replays.advance(100), true);
        await assertTold(bench, { replays: true }, 'a part of it');
        let time = 5_000;
        do {
            time += 5_000;
            await bench.setTime(at(time));
        } while ((await replays.advance(100)) && time < 60_000);
        await assertTold(bench, { replays: false }, 'all of it');
    },

    async 'tells whether a notice of an exporter waits'(bench) {
        const { exporters } = bench;
        if (exporters.notices === undefined) {
            return;
        }
        await bench.addExporter();
        await bench.publish({}, {}, {});
        await bench.failInTurn(2, 100);
        await assertTold(bench, { notices: false });
        await bench.failInTurn(1, 200);
        await assertTold(bench, { notices: true });
        await exporters.forgetNotices?.((await exporters.notices(10, 0)).map(({ id }) => id));
        await assertTold(bench, { notices: false });
    },

    async 'says when it has handed nothing out, since nothing was due, when something will be'(bench) {
        await bench.addExporter();
        assert.equal((await nextDueIn(bench, 0)) ?? null, null, 'nothing waits');
        await bench.publish({}, {});
        const unknown = await nextDueIn(bench, 1);
        assert.equal(unknown, undefined, 'these were due');
        const [first, second] = await bench.claim(
            (await bench.listed({ state: 'queued' })).map(({ id }) => id),
            at(2),
        );
        await bench.record([failure(present(first), 700), failure(present(second), 500)], at(10));
        const told = await nextDueIn(bench, 200);
        assert.ok(told === undefined || (told !== null && told <= 310 && told > 300), String(told));
        assert.equal(await nextDueIn(bench, 600), undefined, 'the second is due');
    },

    async 'says so of an exporter that has recovered, once nothing is left that was tried before'(bench) {
        const tells = (await nextDueIn(bench, 0)) !== undefined;
        const { after, onItsWay } = await recover(bench);
        await bench.record([success(onItsWay)], at(after));
        await failOnce(bench, after);
        await nextDueIn(bench, after + 10_000);
        assert.equal(await nextDueIn(bench, after + 20_000), tells ? 40_010 : undefined);
    },

    async 'hands out at once what was on its way when its exporter recovered, however late it fails'(bench) {
        const { after, onItsWay } = await recover(bench);
        await failOnce(bench, after);
        await nextDueIn(bench, after + 10_000);
        await nextDueIn(bench, after + 20_000);
        await bench.record([failure(onItsWay, 60_000)], at(after + 21_000));
        assert.deepEqual(await bench.dispatchedIds({ now: at(after + 22_000) }), [onItsWay.deliveryId]);
    },

    async 'does not say so while something is due for which there is no room'(bench) {
        await bench.addExporter();
        await bench.publish({}, {});
        await bench.setTime(at(1));
        const options = { window: 1, breakerAfter: RULES.after, limit: 10, beginWithin: BEGIN_WITHIN };
        only((await bench.deliveries.dispatch(options)).handedOut);
        const { handedOut, nextDueIn } = await bench.deliveries.dispatch(options);
        assert.deepEqual([handedOut, nextDueIn], [[], undefined]);
    },
};

/** An exporter whose breaker has opened, and that takes all that its window allows again, when so many milliseconds have passed; one attempt is still on its way. */
async function recover(bench: WebhookBench): Promise<{ readonly after: number; readonly onItsWay: Claim }> {
    await bench.addExporter();
    await bench.publish({}, {});
    const [onItsWay, recovering] = await bench.claimDue();
    await bench.publish();
    await bench.failInTurn(RULES.after, 100);
    await bench.record([success(present(recovering))], at(500));
    await bench.publishAt(at(2_000), ...Array(RULES.window).fill({}));
    for (let time = 2_000; time < 4_000; time += 100) {
        const claims = await bench.claimDue({ now: at(time) });
        await bench.record(
            claims.map((one) => success(one)),
            at(time + 5),
        );
    }
    assert.deepEqual(await bench.listed({ state: 'pending' }), []);
    return { after: 5_000, onItsWay: present(onItsWay) };
}

/** One more delivery, that waits a minute for its next try. */
async function failOnce(bench: WebhookBench, time: number): Promise<void> {
    await bench.publishAt(at(time));
    const claimed = only(await bench.claimDue({ now: at(time) }));
    await bench.record([failure(claimed, 60_000)], at(time + 10));
}

function newSession() {
    return { id: randomUUID(), process: 'a process', slots: {} };
}

/** What the store tells with a heartbeat; undefined where it tells nothing. */
async function told(bench: WebhookBench): Promise<Outlook | undefined> {
    let outlook: Outlook | undefined;
    await bench.deliveries.keepAlive(newSession(), 1_000, undefined, (one) => {
        outlook = one;
    });
    return outlook;
}

async function assertTold(bench: WebhookBench, expected: Partial<Outlook>, when?: string): Promise<void> {
    const outlook = await told(bench);
    if (outlook !== undefined) {
        const found = Object.fromEntries(Object.keys(expected).map((name) => [name, outlook[name as keyof Outlook]]));
        assert.deepEqual(found, expected, when);
    }
}

/** What a dispatch says of it at this time. */
async function nextDueIn(bench: WebhookBench, milliseconds: number): Promise<number | null | undefined> {
    await bench.setTime(at(milliseconds));
    return (await bench.deliveries.dispatch({ window: 10, breakerAfter: RULES.after, limit: 10 })).nextDueIn;
}
