import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Joi from 'joi';
import t, { type Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { countingReceiver } from '../support/counting-receiver.ts';
import { type Embedding, embedding } from '../support/embedding-host.ts';
import { investigation } from '../support/investigation.ts';
import { ended, linesOf, nextJson, scanwire, startScanwire } from '../support/scanwire.ts';

const KIND = 'idr_investigation_created';
const ARGS = ['worker', '--collector', 'default', '--json'];

async function startWorker(t: Test, { env }: Embedding, ...more: string[]) {
    const worker = startScanwire([...ARGS, ...more], { env });
    t.teardown(() => worker.kill('SIGKILL'));
    const lines = linesOf(worker);
    return { worker, lines, ready: await nextJson(worker, lines) };
}

/** The only line that a worker says which does not start. */
async function refusal({ env }: Embedding, more: readonly string[] = [], variables: Readonly<Record<string, string>> = {}) {
    const { code, stderr } = await scanwire([...ARGS, ...more], { env: { ...env, ...variables } });
    return { exit: code, error: JSON.parse(stderr).error as object };
}

function configOf(t: Test, text: string): readonly string[] {
    const file = join(t.testdir(), `${t.name.replaceAll(/\W/g, '-')}-${text.length}.mjs`);
    writeFileSync(file, text);
    return ['--config', file];
}

t.test('a worker sends as the vendor of its host, under its egress rules', async (t) => {
    const receiver = await countingReceiver(t, (response) => response.writeHead(204).end());
    const application = await embedding(t);
    const { server } = await application.host({ vendor: 'Acme' });
    const { worker } = await startWorker(t, application);
    const { exporters, publish } = server.plugins['webhook-exporter'];
    const { exporter } = await exporters.create({ url: receiver.url, headers: [['X-Vendor-Thing', 'yes']] });
    t.match(await exporters.start(exporter.id), { test: { attempt: { outcome: { code: 'delivered' } } } });
    await publish(KIND, investigation);
    await receiver.received(KIND);
    t.strictSame(receiver.vendors, ['acme', 'acme']);
    t.equal(await ended(worker, 'SIGTERM'), 0);
});

t.test('a worker that is given something else refuses to start, with the name of the option and both values', async (t) => {
    const application = await embedding(t);
    await application.host({ vendor: 'Acme', window: 20 });

    t.match(await refusal(application, [], { SCANWIRE_EGRESS_ALLOW: '10.0.0.0/8' }), {
        exit: 1,
        error: {
            code: 'MISCONFIGURED',
            field: 'egress',
            message: /egress is {"allow":\["10.0.0.0\/8"]} here and {"allow":\["127.0.0.0\/8"]} in/,
        },
    });
    t.match(await refusal(application, [], { SCANWIRE_RESOLVER: 'system' }), {
        exit: 1,
        error: { code: 'MISCONFIGURED', field: 'resolver', message: /resolver is "system" here and "dns" in the store$/ },
    });
    const allow = `egress: { allow: ['127.0.0.0/8'] }`;
    t.match(await refusal(application, configOf(t, `export default { vendor: 'Other', ${allow} };`)), {
        exit: 1,
        error: {
            code: 'MISCONFIGURED',
            field: 'vendor',
            message: /vendor is "Other" here and "Acme" in the store, window is 400 here and 20 in the store$/,
        },
    });
    t.match(await refusal(application, configOf(t, 'export default 1;')), { exit: 1, error: { field: 'config' } });
    t.match(await refusal(application, configOf(t, 'export default {')), { exit: 1, error: { field: 'config', message: /^Cannot load / } });
    t.match(await refusal(application, configOf(t, 'export default { vendr: 1 };')), { exit: 1, error: { field: 'vendr' } });

    const { worker } = await startWorker(t, application, ...configOf(t, `export default { vendor: 'Acme', window: 20, ${allow} };`));
    t.equal(await ended(worker, 'SIGTERM'), 0);
});

t.test('a worker begins again with the settings of a newer start; the older host sends nothing more and says so once', async (t) => {
    const receiver = await countingReceiver(t, (response) => response.writeHead(204).end());
    const application = await embedding(t);
    const older = await application.host({ vendor: 'Acme', collectors: ['default'] });
    const { worker, lines, ready } = await startWorker(t, application);
    t.match(ready, { generation: 1 });
    const fixed = await startWorker(
        t,
        application,
        ...configOf(t, `export default { vendor: 'Acme', egress: { allow: ['127.0.0.0/8'] } };`),
    );
    const { exporters, publish } = older.server.plugins['webhook-exporter'];
    const { exporter } = await exporters.create({ url: receiver.url });
    await exporters.start(exporter.id);
    await receiver.received('test');

    const exited = once(fixed.worker, 'exit');
    const newer = await application.host({ vendor: 'Beta' });
    t.match(await exited, [1], 'a worker with options of its own ends where they do not fit any more');
    t.match(await nextJson(worker, lines), { generation: 2 });
    await publish(KIND, investigation);
    await receiver.received(KIND);
    t.strictSame(receiver.vendors, ['acme', 'beta'], 'what the older host accepts goes out all the same');

    await newer.server.plugins['webhook-exporter'].publish(KIND, investigation);
    await receiver.received(KIND, 2);
    t.strictSame(receiver.vendors, ['acme', 'beta', 'beta']);
    t.match(
        older.errors.map(({ message }) => message),
        [/^Cannot go on sending here: another process has changed the settings \(vendor is "Acme" here and "Beta" in the store\)$/],
    );
    t.equal(older.errors.length, 1);
    t.equal(await ended(worker, 'SIGTERM'), 0);
});

t.test('a worker that begins again goes on trying while its store is away', async (t) => {
    const application = await embedding(t);
    await application.host({ vendor: 'Acme' });
    const built = (file: string): string => JSON.stringify(new URL(`../../${file}`, import.meta.url).href);
    const config = `
        import pg from ${JSON.stringify(import.meta.resolve('pg'))};
        import { postgresWebhooks } from ${built('adapters/postgres/index.js')};
        import { ScanwireError } from ${built('lib/errors.js')};

        const stores = postgresWebhooks({ pool: new pg.Pool({ connectionString: process.env.DATABASE_URL }) });
        let sees = 0;
        const read = async () => {
            const deployment = await stores.settings.read();
            sees += deployment.generation === 2 ? 1 : 0;
            if (sees === 2) {
                throw new ScanwireError('UNAVAILABLE', 'The store is away');
            }
            return deployment;
        };
        export default { stores: { ...stores, settings: { ...stores.settings, read } }, vendor: 'Acme', egress: { allow: ['127.0.0.0/8'] } };
    `;
    const { worker, lines } = await startWorker(t, application, ...configOf(t, config));
    let said = '';
    worker.stderr?.on('data', (text) => {
        said += text;
    });
    await application.host({ vendor: 'Acme', kinds: [{ name: 'scan_finished', schema: Joi.object() }] });
    t.match(await nextJson(worker, lines), { generation: 2 });
    // By another pipe than the line, which may be read first.
    await until(() => /another process has changed the settings.*\n.*The store is away\n/.test(said));
    t.equal(await ended(worker, 'SIGTERM'), 0);
});
