import t from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { usedDataOf } from '../support/served.ts';
import { assertSameDuplicates } from './support/duplicates.ts';
import { publishMany } from './support/investigations.ts';
import { json, receiver, serve } from './support/processes.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

const COUNT = 500;

t.test('delivers all of 500 investigations although the embedded server is killed while it delivers', async (t) => {
    const folder = temporaryFolder(t);
    const data = await usedDataOf(t);
    const to = await receiver(t, folder, 50);
    const env = { SCANWIRE_EGRESS_ALLOW: '127.0.0.0/8' };
    const first = await serve(t, data, { env });
    const { id } = await json<{ id: string }>(['exporters', 'create', '--url', to.url, '--name', 'kept', '--data', data], { env });
    await json(['exporters', 'start', id, '--data', data], { env });

    const ids = await publishMany(data, COUNT);
    await to.holding();
    await first.stop('SIGKILL');
    const before = to.investigations().size;
    t.ok(before < COUNT, `killed in the middle: ${before} of ${COUNT} had arrived`);

    to.release();
    await serve(t, data, { env });
    await until(() => to.investigations().size === COUNT);
    t.strictSame([...to.investigations()].toSorted(), [...ids].toSorted());
    assertSameDuplicates(t, to.messages());
});
