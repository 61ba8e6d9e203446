import t from 'tap';
import { ENDS, hostWith, packed } from './peers.ts';

// Installing takes its time on a busy machine.
t.setTimeout(300_000);
const { folder, remove } = await packed();
t.teardown(remove);

for (const peers of ENDS) {
    t.test(`fits a host with hapi ${peers.hapi}, joi ${peers.joi}${peers.types ? ', its types included' : ''}`, async (t) => {
        t.match(await hostWith(peers, folder), {
            hapi: peers.hapi,
            status: 200,
            row: { id: 1, at: 'x' },
            deliveries: [],
            refused: /^Body of scan_finished: /,
        });
    });
}
