import t from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { countingReceiver } from '../support/counting-receiver.ts';
import { fixture, json, serveIn, usedDataOf } from '../support/served.ts';

t.test('sends no faster than --rate says, all exporters together', async (t) => {
    const came: number[] = [];
    const { url } = await countingReceiver(t, (response) => {
        came.push(performance.now());
        response.writeHead(204).end();
    });
    const data = await usedDataOf(t);
    await serveIn(t, { SCANWIRE_EGRESS_ALLOW: new URL(url).host }, data, '--rate', '1/s');
    for (const name of ['one', 'other']) {
        await json(data, 'exporters', 'create', '--url', url, '--name', name, '--start');
    }
    const tests = came.length;
    for (let number = 0; number < 2; number += 1) {
        await json(data, 'events', 'publish', 'idr_investigation_created', fixture('events/investigation.json'));
    }
    await until(async () => came.length >= tests + 4);
    const [first = 0, , , last = 0] = came.slice(tests);
    t.ok(last - first > 2_000, `four at one a second took ${Math.round(last - first)} ms`);
});
