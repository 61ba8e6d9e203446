import { randomBytes } from 'node:crypto';
import Joi from 'joi';
import t from 'tap';
import { memoryQueue, memoryWebhooks } from '../../adapters/memory/index.ts';
import { webhooksOver } from '../../cli/deployment.ts';
import { egressGuard } from '../../lib/egress/guard.ts';
import { keyRing as newKeyRing } from '../../lib/keys/index.ts';
import type { DeploymentSettings } from '../../lib/webhooks/deployment-settings.ts';
import type { ExporterChanges } from '../../lib/webhooks/exporters/exporter-patch.ts';
import { httpSender } from '../../lib/webhooks/sending/http-sender.ts';
import { recordingProcess } from '../support/recording-process.ts';
import { INVESTIGATION } from '../support/simulated-deployment.ts';

const LACKS_FORMAT = /This process has no format acme: it is none of scanwire, and none that its application has given$/;
const keyRing = newKeyRing({ current: 'k1', keys: { k1: randomBytes(32) } });

t.test('names a setting that a host of a version before has stored and this one refuses, and where it comes from', async (t) => {
    const stores = memoryWebhooks();
    const host = await webhooksOver({ stores, keyRing, queue: memoryQueue(), receivers: {} }, null, {});
    await host.start();
    await host.close();
    const { settings } = await stores.settings.read();
    const worker = (kept: Partial<DeploymentSettings>) =>
        webhooksOver(
            { stores, keyRing, queue: memoryQueue(), receivers: {} },
            { ...(settings as DeploymentSettings), ...kept },
            { role: 'worker' },
        );

    await (await worker({})).close();
    for (const [name, value, rule] of [
        ['stopAfter', 5, /milliseconds/],
        ['vendor', 'A B', /letters and digits/],
        ['attemptTimeout', 20, /milliseconds/],
        ['egress', { allow: ['10.1.2.3/8'] }, /first address/],
    ] as const) {
        const refused = worker({ [name]: value });
        await t.rejects(
            refused,
            { code: 'MISCONFIGURED', message: /^Cannot use the settings that a host has stored: .*Start the host with others first$/ },
            name,
        );
        await t.rejects(refused, { message: rule }, name);
        await t.rejects(refused, { message: name }, name);
    }
});

t.test('removes nothing by the settings that are kept, which do not say how long anything is', async (t) => {
    const stores = memoryWebhooks();
    let runs = 0;
    Object.assign(stores.deliveries.retention ?? {}, {
        begin: async () => {
            runs += 1;
            return false;
        },
    });
    const parts = { stores, keyRing, queue: memoryQueue(), receivers: {} };
    const { settings } = await stores.settings.read();
    const own = await webhooksOver({ ...parts, manages: true }, settings, { role: 'host' });
    await own.start();
    await own.close();

    t.equal(runs, 0);
});

t.test('manages exporters with kinds and formats of an application, of which it knows the names at most', async (t) => {
    const stores = memoryWebhooks();
    const guard = egressGuard({ allow: [] });
    const host = recordingProcess(t, stores, {
        guard,
        sender: httpSender({ guard }),
        keyRing,
        kinds: [{ name: 'scan_finished', schema: Joi.object({ hosts: Joi.number().required() }) }],
        formats: [{ name: 'acme', contentType: 'text/plain', make: ({ id }) => ({ body: id }) }],
    });
    await host.start();
    const filter = { path: 'hosts', op: '>', value: 3 } as const;
    const { exporter } = await host.exporters.create({
        url: 'https://receiver.example/',
        kinds: ['scan_finished'],
        filter,
        format: 'acme',
    });
    await host.close();

    const { settings } = await stores.settings.read();
    const { exporters, publish, start, close } = await webhooksOver({ stores, keyRing, queue: memoryQueue(), receivers: {} }, settings, {});
    const { id } = exporter;
    const changed = async (changes: ExporterChanges) => (await exporters.update(id, changes, { wait: false })).exporter;
    t.match(await changed({ rate: 7 }), { rate: 7, kinds: ['scan_finished'], filter, format: 'acme' });
    t.match(await changed({ headers: [['X-Team', 'blue']] }), { headerNames: ['X-Team'] });
    t.match(await changed({ kinds: ['scan_*', 'idr_investigation_created'] }), { kinds: ['scan_*', 'idr_investigation_created'] });
    await t.rejects(changed({ kinds: ['scna_*'] }), { field: 'kinds[0]', message: /fits no event kind: there are .*scan_finished/ });
    t.match(await changed({ filter: { path: 'hosts', op: '≠', value: 0 } }), { filter: { path: 'hosts', op: '≠', value: 0 } });
    await t.rejects(changed({ filter: { path: 'hosts', op: '<', value: 'x' } }), { code: 'INVALID_INPUT', field: 'filter.value' });
    await t.rejects(changed({ kinds: ['idr_investigation_created'] }), { field: 'filter.path', message: /leads to nothing/ });
    await t.rejects(changed({ template: { text: 'x' } }), { code: 'INVALID_INPUT', field: 'format', message: LACKS_FORMAT });

    const lacksSchema = {
        code: 'INVALID_INPUT',
        message: 'Body of scan_finished: this process has no schema of this kind of the application: it needs --config',
    };
    await t.rejects(exporters.explain(id, 'scan_finished', { hosts: 9 }), lacksSchema);
    await t.rejects(exporters.preview(id, 'scan_finished', { hosts: 9 }), lacksSchema);
    await t.rejects(publish('scan_finished', { hosts: 9 }), lacksSchema);
    t.match(await exporters.explain(id, 'idr_investigation_created', { ...INVESTIGATION, title: 'x' }), {
        wanted: false,
        reason: 'It is stopped',
    });
    await t.rejects(exporters.preview(id, 'idr_investigation_created', { ...INVESTIGATION, title: 'x' }), {
        code: 'INVALID_INPUT',
        message: LACKS_FORMAT,
    });

    await start();
    await close();
    t.strictSame((await stores.settings.read()).settings, settings, 'what the host has stored is as it was');
});

t.test('knows what a host gives to owners: addresses, numbers of exporters and collectors', async (t) => {
    const stores = memoryWebhooks();
    const guard = egressGuard({ allow: [], owners: { ann: ['10.7.0.0/16'] } });
    const owners = { eve: { collectors: ['west', 'edge'], maxExporters: 2 } };
    const host = recordingProcess(t, stores, { guard, sender: httpSender({ guard }), keyRing, maxExportersPerOwner: 1, owners });
    await host.start();
    const own = { url: 'https://10.7.0.1/', owner: 'ann' };
    await host.exporters.create(own);
    await t.rejects(host.exporters.create(own), { code: 'CONFLICT', field: 'owner' });
    await host.close();

    const { settings } = await stores.settings.read();
    const { exporters, start, close } = await webhooksOver({ stores, keyRing, queue: memoryQueue(), receivers: {} }, settings, {});
    await t.rejects(exporters.create(own), { code: 'CONFLICT', field: 'owner' });
    await t.rejects(exporters.create({ ...own, owner: 'bob' }), { code: 'INVALID_INPUT', field: 'url' });
    const ofEve = { url: 'https://receiver.example/', owner: 'eve' };
    await t.rejects(exporters.create(ofEve), { code: 'INVALID_INPUT', field: 'collector' });
    t.match(await exporters.create({ ...ofEve, collector: 'west' }), { exporter: { owner: 'eve' } });
    t.match(await exporters.create({ ...ofEve, collector: 'edge' }), { exporter: { owner: 'eve' } });
    await t.rejects(exporters.create({ ...ofEve, collector: 'edge' }), { code: 'CONFLICT', field: 'owner' });

    await start();
    await close();
    t.strictSame((await stores.settings.read()).settings, settings, 'what the host has stored is as it was');
});

t.test('a worker needs none of what owners may have', async (t) => {
    const stores = memoryWebhooks();
    const guard = egressGuard({ allow: [] });
    const parts = { guard, sender: httpSender({ guard }), keyRing };
    const host = recordingProcess(t, stores, { ...parts, maxExportersPerOwner: 1 });
    await host.start();
    const worker = recordingProcess(t, stores, { ...parts, role: 'worker' });
    await worker.start();
    const { settings } = await stores.settings.read();
    const byCommand = await webhooksOver({ stores, keyRing, queue: memoryQueue(), receivers: {} }, settings, { role: 'worker' });
    await byCommand.start();
    await byCommand.close();
    const other = recordingProcess(t, stores, { ...parts, role: 'worker', maxExportersPerOwner: 2 });
    await t.resolves(other.start(), 'nor is one refused that has others');
});
