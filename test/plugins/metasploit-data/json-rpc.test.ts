import t from 'tap';
import { memoryInventory } from '../../../adapters/memory/index.ts';
import { each, filled, https, SECONDS, served } from './data-service.ts';

t.test('answers the calls of JSON-RPC', async (t) => {
    const { rpc } = await served();
    t.same(await rpc('db.workspaces'), {
        jsonrpc: '2.0',
        result: {
            workspaces: ['default', 'lab'].map((name, index) => ({ id: index + 1, name, created_at: SECONDS, updated_at: SECONDS })),
        },
        id: 1,
    });
    const { hosts } = (await rpc('db.hosts', { workspace: 'default', only_up: true })).result;
    t.same(
        hosts.map(({ address }: { address: string }) => address),
        ['192.0.2.1', '198.51.100.7'],
    );
    t.same(hosts[0], {
        created_at: SECONDS,
        updated_at: SECONDS,
        address: '192.0.2.1',
        mac: '',
        name: 'web',
        state: 'alive',
        os_name: 'Linux',
        os_flavor: '',
        os_sp: '',
        os_lang: '',
        purpose: '',
        info: '',
    });
    const services = async (options: object) =>
        (await rpc('db.services', options)).result.services.map(({ host, port }: { host: string; port: number }) => `${host}:${port}`);
    t.same(await services({}), ['192.0.2.1:443', '192.0.2.1:53', '198.51.100.7:443']);
    t.same(await services({ only_up: true, limit: 1, offset: 1 }), ['198.51.100.7:443']);
    t.same(await services({ proto: 'udp' }), ['192.0.2.1:53']);
    t.same(await services({ ports: '1-60,9999' }), ['192.0.2.1:53']);
    t.same(await services({ ports: '-60,' }), ['192.0.2.1:53']);
    t.same(await services({ ports: '400-, x' }), ['192.0.2.1:443', '198.51.100.7:443']);
    t.same(await services({ ports: 443, addresses: ['192.0.2.0/24'] }), ['192.0.2.1:443']);
    t.same(await services({ names: 'https, ssh', addresses: '198.51.100.7' }), ['198.51.100.7:443']);
    t.same(await services({ limit: 0 }), []);
    t.same((await rpc('db.vulns')).result.vulns[0], {
        port: 443,
        proto: 'tcp',
        time: SECONDS,
        host: '192.0.2.1',
        name: 'Heartbleed',
        refs: 'CVE-2014-0160',
    });
    t.same((await rpc('db.notes', { ntype: 'host.os' })).result.notes, [
        { time: SECONDS, host: '192.0.2.1', service: 53, type: 'host.os', data: '{"os":"Linux","nested":[1]}' },
    ]);
    t.same((await rpc('db.loots')).result, { loots: [] });
    t.same((await rpc('db.creds')).result, { creds: [] });
});

t.test('finds vulnerabilities and notes by their host and their service', async (t) => {
    const { rpc } = await served();
    for (const [method, options, expected] of [
        ['vulns', { address: '192.0.2.1' }, ['Heartbleed']],
        ['vulns', { address: '198.51.100.7', addresses: ['192.0.2.1'] }, ['Heartbleed']],
        ['vulns', { proto: 'udp' }, []],
        ['vulns', { ports: '400-500', proto: 'tcp', limit: 1, offset: 1 }, ['Weak cipher']],
        ['vulns', { ports: 80 }, []],
        ['notes', { address: '198.51.100.7' }, ['x']],
        ['notes', { proto: 'udp' }, ['host.os']],
        ['notes', { ports: '53,54', ntype: 'host.os' }, ['host.os']],
        ['notes', { ports: '1-52' }, []],
        ['hosts', { address: '192.0.2.1', proto: 'udp' }, ['web']],
    ] as const) {
        const { result } = await rpc(`db.${method}`, options);
        const found = result[method].map(({ name, type }: { name?: string; type?: string }) => name ?? type);
        t.same(found, expected, `${method} ${JSON.stringify(options)}`);
    }
});

t.test('reads lists of ports as the framework does', async (t) => {
    const store = memoryInventory();
    const ports = [20, 21, 22, 24, 25, 80, 1024, 8000, 8050, 8100, 65_535];
    await store.importHosts('default', each([{ address: '192.0.2.1', services: ports.map((port) => ({ ...https, port })) }]));
    const { rpc } = await served({ store });
    const but = (...without: readonly number[]) => ports.filter((port) => !without.includes(port));
    for (const [list, expected] of [
        ['21-25,!24', [21, 22, 25]],
        ['!24,21-25', [21, 22, 25]],
        ['21-25, !24-80 ,80', [21, 22]],
        ['!22', but(22)],
        [' !22 , ! 24-80', but(22, 24, 25, 80)],
        ['!8100-8000', but(8000, 8050, 8100)],
        ['8100-8000', [8000, 8050, 8100]],
        ['1024- ,80', but(20, 21, 22, 24, 25)],
        [' -24', [20, 21, 22, 24]],
        ['-24,', [20, 21, 22, 24]],
        ['-', ports],
        ['!-', []],
        ['22', [22]],
        [22, [22]],
        [' 20 - 21 ', [20, 21]],
        ['80,80,70-90', [80]],
        ['x', []],
        ['!x', []],
        ['!', []],
        ['x,!22', []],
        ['80-x, ,22', [22]],
        [',', []],
    ] as const) {
        const { services } = (await rpc('db.services', { ports: list })).result;
        t.same(
            services.map(({ port }: { port: number }) => port),
            expected,
            JSON.stringify(list),
        );
    }
});

t.test('reads no host for what no service lets in', async (t) => {
    const store = await filled();
    let read = 0;
    const counting = {
        ...store,
        hosts: new Proxy(store.hosts, {
            get(hosts, name) {
                read += 1;
                return Reflect.get(hosts, name);
            },
        }),
    };
    const { rpc } = await served({ store: counting });
    read = 0;
    t.same((await rpc('db.vulns', { ports: 80 })).result.vulns, []);
    t.equal(read, 0);
    t.equal((await rpc('db.vulns', { ports: 443 })).result.vulns.length, 2);
    t.ok(read > 0);
});

t.test('answers a call with its id, however long, and with none where it has none', async (t) => {
    const { server, key } = await served();
    const answer = async (payload: string) => {
        const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/x-www-form-urlencoded' };
        return (await server.inject({ method: 'POST', url: '/api/v1/json-rpc', headers, payload })).payload;
    };
    const call = (id: string, rest = '"method":"db.loots","params":[]') => `{"jsonrpc":"2.0",${id}${rest}}`;
    for (const [id, expected] of [
        ['"id":7,', '7'],
        ['"id":9223372036854775806,', '9223372036854775806'],
        ['"id" : -9007199254740993 ,', '-9007199254740993'],
        ['"id":1.5,', '1.5'],
        ['"id":"\\u0061\\"",', '"a\\""'],
        ['"id":"",', '""'],
        ['"id":null,', 'null'],
        ['', 'null'],
        ['"other":{"id":9223372036854775801,"of":[1]},"id":9223372036854775802,"text":"\\"id\\":3",', '9223372036854775802'],
        ['"\\u0069d":1,"id":9223372036854775803,', '9223372036854775803'],
    ] as const) {
        t.equal(await answer(call(id)), `{"jsonrpc":"2.0","result":{"loots":[]},"id":${expected}}`, id);
        t.ok((await answer(call(id, '"method":"db.none"'))).endsWith(`},"id":${expected}}`), id);
    }
    const nobody = '"method":"db.hosts","params":{"workspace":"nobody"}';
    t.match(await answer(call('"id":9223372036854775806,', nobody)), /"code":404.*"id":9223372036854775806}$/);
    t.match(await answer(call('"id":[9223372036854775806],')), /"code":-32600.*"id":null}$/);
    for (const text of ['', '{"id":1', 'jsonrpc=2.0']) {
        t.equal(await answer(text), '{"jsonrpc":"2.0","error":{"code":-32700,"message":"Invalid request: the body is no JSON"},"id":null}');
    }
});

t.test('says what is wrong with a call', async (t) => {
    const { rpc, ask } = await served();
    const call = async (payload: object) => (await ask('/json-rpc', { method: 'POST', payload })).body;
    t.match(await rpc('db.report_host', {}), {
        jsonrpc: '2.0',
        error: { code: -32601, message: /^Method not found: this service has db\.w/ },
        id: 1,
    });
    t.match(await rpc('constructor'), { error: { code: -32601 } });
    t.match(await rpc('db.hosts', {}, {}), { error: { code: -32600 } });
    t.match(await rpc('db.hosts', { limit: -1 }), { error: { code: -32602, message: /^limit must be/ } });
    t.match(await rpc('db.hosts', { addresses: ['x'] }), { error: { code: -32602, message: /^address must be/ } });
    const tooMany = { addresses: Array.from({ length: 1001 }, () => '::') };
    const atMost = 'addresses must contain less than or equal to 1000 items';
    t.match(await rpc('db.hosts', tooMany), { error: { code: -32602, message: atMost } });
    t.match(await rpc('db.hosts', { workspace: 'nobody' }), { error: { code: 404, message: /nobody/ } });
    t.match(await call([]), { error: { code: -32600 }, id: null });
    t.match(await call({ jsonrpc: '1.0', method: 'db.hosts', id: 'a' }), { error: { code: -32600 }, id: 'a' });
});
