import assert from 'node:assert/strict';
import { assertFields, only, present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { at, failure, RULES, success, type WebhookBench } from './fixture.ts';

const HOUR = 3_600_000;

/** What happens once the clock of the store, which was ahead, is set back: times that are to come tell nothing. */
export const clockLaws: Laws<WebhookBench> = {
    async 'tries nothing again before its time after a recovery that is to come'(bench) {
        await bench.addExporter();
        await bench.publishAt(at(HOUR), {});
        await bench.failInTurn(RULES.after, HOUR + 100);
        await bench.record([success(only(await bench.claimDue({ now: at(HOUR + 2_000) })))], at(HOUR + 2_001));

        await bench.publishAt(at(0), {});
        const failed = only(await bench.claimDue());
        await bench.fail([failed], at(60_050), { health: 'none' });
        assert.deepEqual(await bench.dispatchedIds({ now: at(1_000) }), []);
        assert.deepEqual(await bench.dispatchedIds({ now: at(60_050) }), [failed.deliveryId]);
    },

    async 'counts failures after one that is to come'(bench) {
        const { id } = await bench.addExporter();
        await bench.publishAt(at(HOUR), {});
        await bench.failInTurn(1, HOUR);
        await bench.publishAt(at(0), {}, {});
        await bench.failInTurn(2, 100);
        assert.equal((await bench.exporters.get(id))?.consecutiveFailures, 3);
        assert.deepEqual(await bench.dispatchedIds({ now: at(200) }), [], 'the breaker is open');
    },

    async 'tells what a receiver did last, though it did something that is to come'(bench) {
        const { id } = await bench.addExporter();
        await bench.publishAt(at(HOUR), {});
        await bench.record([success(only(await bench.claimDue({ now: at(HOUR) })))], at(HOUR));
        await bench.publishAt(at(0), {});
        await bench.record([failure(only(await bench.claimDue()), 0)], at(100));
        const last = async () => present(await bench.exporters.health(id)).lastOutcome;
        assertFields(await last(), { code: 'connect_refused', at: at(100) });

        for (const time of [5_000, 10_000]) {
            const [claimed] = await bench.claimDue({ now: at(time) });
            await bench.record([success(present(claimed))], at(time));
            assertFields(await last(), { code: 'delivered', at: at(time) });
            await bench.publishAt(at(time), {});
        }
    },
};
