import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Claim } from '../../../lib/webhooks/deliveries/delivery-store.ts';
import type { AttemptResponse, ResponseBody, ResponseStore } from '../../../lib/webhooks/outcomes/response-bodies.ts';
import { inParallel, present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { at, failure, success, type WebhookBench } from './fixture.ts';

const NONE: ReadonlyMap<number, ResponseBody> = new Map();

/** What receivers answered to attempts in vain. */
export const responseLaws: Laws<WebhookBench> = {
    async 'keeps what receivers answered, by the numbers of attempts'(bench) {
        const [one, other] = await bench.claimMany(2);
        const [first, unread] = [body({ text: '{"é":"\\"\u2028🦉"}\n\t<\'>&\\ �' }), body({ text: null, bytes: 142, truncated: true })];
        await storeOf(bench).keep([response(present(one), first), response(present(other), unread)]);
        await bench.fail([present(one), present(other)], at(60));
        const again = present((await bench.claimDue({ now: at(60) })).find(({ deliveryId }) => deliveryId === one?.deliveryId));
        const second = body({ text: '' });
        await storeOf(bench).keep([response(again, second)]);
        await bench.record([failure(again, 0)], at(70));

        assert.deepEqual(
            await bodiesOf(bench, present(one)),
            new Map([
                [1, first],
                [2, second],
            ]),
        );
        assert.deepEqual(await bodiesOf(bench, present(other)), new Map([[1, unread]]));
    },

    async 'has no response of an attempt that got none'(bench) {
        const [answered, silent] = await bench.claimMany(2);
        await storeOf(bench).keep([response(present(answered))]);
        await bench.record([failure(present(answered), 0), failure(present(silent), 0)]);
        assert.deepEqual(await bodiesOf(bench, present(silent)), NONE);
        for (const deliveryId of [randomUUID(), 'no-uuid']) {
            assert.deepEqual(await storeOf(bench).of(deliveryId), NONE);
        }
    },

    async 'keeps the first response of an attempt'(bench) {
        const claim = await bench.claimOne();
        await storeOf(bench).keep([response(claim)]);
        await storeOf(bench).keep([response(claim, body({ text: 'another' }))]);
        await bench.record([failure(claim, 0)]);
        assert.deepEqual(await bodiesOf(bench, claim), new Map([[1, body()]]));
    },

    async 'keeps the response of an attempt whose claim was lost'(bench) {
        const lost = await bench.claimOne();
        await bench.setTime(at(9_999_999));
        await bench.deliveries.sweep({ requeueAfter: 60_000, limit: 9 });
        await storeOf(bench).keep([response(lost)]);
        assert.deepEqual(await bench.record([failure(lost, 0)], at(9_999_999)), [false]);
        assert.deepEqual(await bodiesOf(bench, lost), new Map([[1, body()]]));
    },

    async 'keeps no response of a delivery that does not exist'(bench) {
        const claim = await bench.claimOne();
        const unknown = [randomUUID(), 'no-uuid'].map((deliveryId) => response({ ...claim, deliveryId }));
        await storeOf(bench).keep([...unknown, response(claim)]);
        await bench.record([failure(claim, 0)]);
        assert.deepEqual(await bodiesOf(bench, claim), new Map([[1, body()]]));
        for (const { deliveryId } of unknown) {
            assert.deepEqual(await storeOf(bench).of(deliveryId), NONE);
        }
    },

    async 'erases the responses to an event with its body, and no others'(bench) {
        const [erased, other] = await bench.claimMany(2);
        await storeOf(bench).keep([response(present(erased)), response(present(other))]);
        await bench.fail([present(erased), present(other)], at(60));
        await bench.deliveries.erase(present(erased).event.id);
        assert.deepEqual(await bodiesOf(bench, present(erased)), NONE);
        assert.deepEqual(await bodiesOf(bench, present(other)), new Map([[1, body()]]));
    },

    async 'keeps no response to an event whose body was erased'(bench) {
        const claim = await bench.claimOne();
        await bench.deliveries.erase(claim.event.id);
        await storeOf(bench).keep([response(claim)]);
        await bench.record([success(claim)]);
        assert.equal((await bench.deliveries.attempts(claim.deliveryId)).length, 1);
        assert.deepEqual(await bodiesOf(bench, claim), NONE);
    },

    async 'leaves no response behind when an event is erased while they are kept'(bench) {
        for (let number = 0; number < 20; number += 1) {
            await bench.addExporter({ name: String(number) });
        }
        await bench.publish();
        const claims = await bench.claimDue({ limit: 100 });
        await Promise.all([
            inParallel(claims.length, (index) => storeOf(bench).keep([response(present(claims[index]))])),
            bench.deliveries.erase(present(claims[0]).event.id),
        ]);
        await bench.record(claims.map((claim) => failure(claim, 0)));
        for (const claim of claims) {
            assert.deepEqual(await bodiesOf(bench, claim), NONE);
        }
    },
};

/** How long responses are kept. */
export const retainedResponseLaws: Laws<WebhookBench> = {
    async 'removes responses with their deliveries'(bench) {
        const [removed, stays] = await bench.claimMany(2);
        await storeOf(bench).keep([response(present(removed)), response(present(stays))]);
        await bench.record([failure(present(removed), 0, { next: { state: 'exhausted' } }), failure(present(stays), 0)], at(50));
        await bench.setTime(at(2_000));
        for await (const _ of present(bench.deliveries.retention).expire(1_000)) {
            // Each step removes something of its own.
        }
        assert.equal(await bench.deliveries.get(present(removed).deliveryId), null);
        assert.deepEqual(await bodiesOf(bench, present(removed)), NONE);
        assert.deepEqual(await bodiesOf(bench, present(stays)), new Map([[1, body()]]));
    },
};

function body(overrides: Partial<ResponseBody> = {}): ResponseBody {
    return { text: 'not today', bytes: 9, truncated: false, ...overrides };
}

function response({ deliveryId, token }: Pick<Claim, 'deliveryId' | 'token'>, said: ResponseBody = body()): AttemptResponse {
    return { deliveryId, token, body: said };
}

function storeOf({ deliveries }: WebhookBench): ResponseStore {
    return present(deliveries.responses);
}

async function bodiesOf(bench: WebhookBench, { deliveryId }: Pick<Claim, 'deliveryId'>): Promise<ReadonlyMap<number, ResponseBody>> {
    return await storeOf(bench).of(deliveryId);
}
