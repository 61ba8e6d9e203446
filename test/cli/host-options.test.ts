import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Joi from 'joi';
import t, { type Test } from 'tap';
import { countingReceiver } from '../support/counting-receiver.ts';
import { type Embedding, embedding } from '../support/embedding-host.ts';
import { commandsInOneProcess, ended, scanwire } from '../support/scanwire.ts';
import { dataOf, serve } from '../support/served.ts';

/** What a host and its module have in common: a kind and a format of their own. */
const OWN = {
    vendor: 'Acme',
    kinds: [{ name: 'scan_finished', schema: Joi.object({ hosts: Joi.number().required() }) }],
    formats: [{ name: 'acme', contentType: 'text/plain', make: ({ text }: { readonly text: string }) => ({ body: `acme ${text}` }) }],
};

const MODULE = `
    import Joi from ${JSON.stringify(import.meta.resolve('joi'))};
    export default {
        vendor: 'Acme',
        kinds: [{ name: 'scan_finished', schema: Joi.object({ hosts: Joi.number().required() }) }],
        formats: [{ name: 'acme', contentType: 'text/plain', make: ({ text }) => ({ body: 'acme ' + text }) }],
        egress: { allow: ['127.0.0.0/8'] },
    };
`;

interface Files {
    readonly data: string;
    readonly config: readonly string[];
    /** The same of a module that leaves something open, as a pool of connections is. */
    readonly open: readonly string[];
    readonly body: string;
    readonly wrong: string;
}

function filesOf(t: Test): Files {
    const folder = t.testdir({
        'body.json': '{"hosts":9}',
        'wrong.json': '{"hosts":"x"}',
        'host.mjs': MODULE,
        'open.mjs': `setInterval(() => {}, 3_600_000);${MODULE}`,
    });
    const at = (name: string): string => join(folder, name);
    const config = (name: string) => ['--config', at(name)];
    return { data: at('data'), config: config('host.mjs'), open: config('open.mjs'), body: at('body.json'), wrong: at('wrong.json') };
}

/** A command on the database of a host, and what it answers or refuses with. */
function commandsOn(t: Test, { env: { REDIS_URL: _, ...env } }: Embedding, data: string) {
    const commands = commandsInOneProcess();
    t.after(() => commands.end());
    return async (...args: readonly string[]) => {
        const { code, stdout, stderr } = await commands.run([...args, '--data', data, '--json'], { env });
        return { code, ...(stdout === '' ? JSON.parse(stderr) : { answer: JSON.parse(stdout) }) } as {
            readonly code: number;
            readonly answer?: Record<string, unknown>;
            readonly error?: object;
        };
    };
}

t.test('commands with the options of a host know its kinds and formats, and change none of its settings', async (t) => {
    const receiver = await countingReceiver(t, (response) => response.writeHead(204).end());
    const application = await embedding(t);
    const { server } = await application.host({ ...OWN, collectors: ['default'] });
    const { data, config, open, body, wrong } = filesOf(t);
    const command = commandsOn(t, application, data);
    const kept = await application.pool.query('SELECT * FROM scanwire.deployment');

    const filter = join(t.testdirName, 'filter.json');
    writeFileSync(filter, '{"path":"host","op":">","value":3}');
    const create = ['exporters', 'create', '--url', receiver.url, '--kinds', 'scan_finished', '--filter', filter];
    t.match(await command(...create, ...config), { code: 1, error: { code: 'INVALID_INPUT', field: 'filter.path' } });
    writeFileSync(filter, '{"path":"hosts","op":">","value":3}');
    const created = await command(...create, '--format', 'acme', '--start', ...config);
    t.match(created, { code: 0, answer: { format: 'acme', state: 'running', test: { attempt: { code: 'delivered' } } } });
    const id = String(created.answer?.id);

    const event = ['--kind', 'scan_finished', '--body'];
    t.match(await command('exporters', 'explain', id, ...event, body, ...config), { code: 0, answer: { wanted: true } });
    t.match(await command('exporters', 'explain', id, ...event, wrong, ...config), {
        code: 1,
        error: { code: 'INVALID_INPUT', field: 'hosts' },
    });
    t.match(await command('exporters', 'preview', id, ...event, body, ...config), { code: 0, answer: { body: 'acme {"hosts":9}' } });
    const tested = await scanwire(['exporters', 'test', id, ...open, '--data', data], { env: application.env });
    t.match(tested, { code: 0, stdout: /^Test delivered/ });
    t.match(await command('exporters', 'update', id, '--kinds', 'scan_fnished', ...config), { code: 1, error: { field: 'kinds[0]' } });
    t.match(await command('exporters', 'update', id, '--format', 'acme', ...config), { code: 0 });
    t.match(await command('events', 'publish', 'scan_finished', wrong, ...config), {
        code: 1,
        error: { code: 'INVALID_INPUT', field: 'hosts' },
    });
    t.match(await command('events', 'publish', 'scan_finished', body, ...config), { code: 0, answer: { deliveries: [String] } });
    await receiver.received('scan_finished');
    t.same(new Set(receiver.vendors), new Set(['acme']));

    t.strictSame((await application.pool.query('SELECT * FROM scanwire.deployment')).rows, kept.rows);
    t.match(await server.plugins['webhook-exporter'].readiness(), { ready: true });
    t.notOk(existsSync(data), 'nor do they leave a data folder');
});

t.test('commands without the options of a host name --config for what they cannot do, and know what owners may have', async (t) => {
    const application = await embedding(t);
    const { server } = await application.host({ ...OWN, maxExportersPerOwner: 1 });
    const { exporters } = server.plugins['webhook-exporter'];
    const { exporter } = await exporters.create({ url: 'https://receiver.example/', kinds: ['scan_finished'], format: 'acme' });
    const { data, config, body } = filesOf(t);
    const command = commandsOn(t, application, data);
    const event = ['--kind', 'scan_finished', '--body', body];
    const noSchema = {
        code: 1,
        error: { code: 'INVALID_INPUT', message: /no schema of this kind of the application: it needs --config$/ },
    };
    const noFormat = (rule: RegExp) => ({ code: 1, error: { code: 'INVALID_INPUT', field: 'format', message: rule } });

    t.match(await command('events', 'publish', 'scan_finished', body), noSchema);
    t.match(await command('exporters', 'explain', exporter.id, ...event), noSchema);
    t.match(
        await command('exporters', 'preview', exporter.id, '--kind', 'test'),
        noFormat(/no format acme: .*\. One of the host's own needs --config$/),
    );
    t.match(
        await command('exporters', 'create', '--url', 'https://receiver.example/', '--format', 'acme'),
        noFormat(/^Format must be one of native, .*\. One of the host's own needs --config$/),
    );
    t.match(await command('exporters', 'update', exporter.id, '--kinds', 'scan_finished', '--rate', '5'), { code: 0 });

    const ofAnn = ['exporters', 'create', '--url', 'https://receiver.example/', '--owner', 'ann'];
    const oneMore = { code: 1, error: { code: 'CONFLICT', field: 'owner', message: 'Owner cannot have more exporters than 1' } };
    t.match(await command(...ofAnn), { code: 0 });
    t.match(await command(...ofAnn), oneMore, 'what owners may have is kept by the host');
    t.match(await command(...ofAnn, ...config), oneMore, 'also beside options that say nothing of it');
    const [, file = ''] = config;
    writeFileSync(`${file}.more.mjs`, `import options from './host.mjs'; export default { ...options, maxExportersPerOwner: 2 };`);
    t.match(await command(...ofAnn, '--config', `${file}.more.mjs`), {
        code: 1,
        error: { code: 'MISCONFIGURED', field: 'maxExportersPerOwner', message: /is 2 here and 1 in the store$/ },
    });
});

t.test('options that are not those of the host are refused before anything is done', async (t) => {
    const application = await embedding(t);
    const { config, data } = filesOf(t);
    const command = commandsOn(t, application, data);
    const create = ['exporters', 'create', '--url', 'https://receiver.example/', ...config];
    t.match(await command(...create), { code: 1, error: { code: 'MISCONFIGURED', message: /start the host first$/ } });

    await application.host({ ...OWN, vendor: 'Other', window: 20 });
    t.match(await command(...create), {
        code: 1,
        error: {
            code: 'MISCONFIGURED',
            field: 'vendor',
            message:
                /^Settings must be those of the host: vendor is "Acme" here and "Other" in the store, window is 400 here and 20 in the store/,
        },
    });
    t.match(await command('exporters', 'list'), { code: 0, answer: [] });

    const nowhere = await scanwire([...create, '--data', data]);
    t.match(nowhere, { code: 1, stderr: /There is no data folder at .*set DATABASE_URL for the database of a host/ });
    t.notOk(existsSync(data));
});

t.test('a server has options of its own', async (t) => {
    const data = dataOf(t);
    const { server } = await serve(t, data);
    const { config, body } = filesOf(t);
    t.match(await scanwire(['events', 'publish', 'idr_investigation_created', body, ...config, '--data', data]), {
        code: 1,
        stderr: `scanwire: --config does not go with the server that runs on ${data}: it has options of its own\n`,
    });
    t.equal(await ended(server, 'SIGTERM'), 0);
});
