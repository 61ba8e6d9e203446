import t from 'tap';
import { memoryWebhooks } from '../../../adapters/memory/index.ts';
import { membership } from '../../../lib/webhooks/deployment-settings.ts';

t.test('what owners may have is kept for those who manage exporters, and changes beside who sends', async (t) => {
    const { settings } = memoryWebhooks();
    const errors: Error[] = [];
    const shared = {
        vendor: 'Acme',
        kinds: [],
        window: 1,
        rate: null,
        breakerAfter: 1,
        stopAfter: 1,
        maxBodyBytes: 1,
        keepResponses: true,
    };
    const parts = { ...shared, sender: { attemptTimeout: 1 }, guard: {}, tracing: null, settings, queue: {}, maxExportersPerOwner: null };
    const process = (own: object) => {
        const seen = { outdated: false };
        const onError = (error: Error) => errors.push(error);
        const member = membership({ ...parts, owners: {}, onError, ...own }, () => {
            seen.outdated = true;
        });
        t.teardown(member.leave);
        return { ...member, seen };
    };

    const [host, worker, other] = [process({}), process({}), process({ maxExportersPerOwner: 3 })];
    await host.join('host');
    await worker.join('worker');
    t.notMatch((await settings.read()).settings, { owners: {} }, 'by default nothing is said of it');
    await other.join('host');
    t.match(await settings.read(), { generation: 1, settings: { maxExportersPerOwner: 3 } });
    for (const member of [host, worker]) {
        await member.checkSettings();
        t.notOk(member.seen.outdated);
        t.equal(member.generation(), 1);
    }
    await process({}).join('worker');

    const owners = { ann: { collectors: ['west', 'edge'] } };
    const third = process({ owners });
    await third.join('host');
    t.match((await settings.read()).settings, { owners: { ann: { collectors: ['edge', 'west'] } } });
    await third.checkSettings();
    await process({ owners: { ann: { collectors: ['edge', 'west', 'edge'] } } }).join('worker');
    t.same(errors, []);

    await process({ owners, vendor: 'Beta' }).join('host');
    for (const member of [host, third]) {
        await member.checkSettings();
        t.ok(member.seen.outdated);
    }
    t.match(errors, [
        { message: /vendor is "Acme" here and "Beta" in/ },
        { message: /\(vendor is "Acme" here and "Beta" in the store\)$/ },
    ]);
});
