import t from 'tap';
import { seeded } from '../support/seeded.ts';
import { fuzzReader } from './fuzz-reader.ts';
import { fuzzResponse } from './fuzz-response.ts';

const INPUTS = 10_000;
const FIRST_SEED = Math.floor(Math.random() * 1_000_000_000);

for (const [name, fuzz] of Object.entries({ fuzzReader, fuzzResponse })) {
    t.test(`${name} takes ${INPUTS} inputs`, async (t) => {
        for (let seed = FIRST_SEED; seed < FIRST_SEED + INPUTS; seed += 1) {
            try {
                await fuzz(seeded(seed));
            } catch (error) {
                t.error(error, `npm run fuzz -- --seed ${seed} --inputs 1`);
                return;
            }
        }

        t.pass(`seeds from ${FIRST_SEED}`);
    });
}
