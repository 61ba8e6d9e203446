import t from 'tap';
import { fuzzOne } from './fuzz-one.ts';

const INPUTS = 12_000;
const FIRST_SEED = Math.floor(Math.random() * 1_000_000_000);

t.test(`takes ${INPUTS} inputs`, async (t) => {
    for (let seed = FIRST_SEED; seed < FIRST_SEED + INPUTS; seed += 1) {
        try {
            await fuzzOne(seed);
        } catch (error) {
            t.error(error, `npm run fuzz -- --seed ${seed} --inputs 1`);
            return;
        }
    }

    t.pass(`seeds from ${FIRST_SEED}`);
});
