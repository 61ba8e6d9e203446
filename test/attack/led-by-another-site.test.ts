import type { Server } from '@hapi/hapi';
import t, { type Test } from 'tap';
import { admin, host, register, systemOf } from '../plugins/admin-console/host.ts';

/*
 * Another site leads the browser of an administrator to what shows a secret, by a link, a picture or a frame: a host whose cookie is `SameSite=Lax` gets
 * it by a link, one whose cookie has no `SameSite` by all of them. The one of `serve` is `Strict`, so a host is asked here.
 */

const RECEIVER = 'https://example.com/hooks/s3cret-path';
const ELSEWHERE = ['cross-site', 'same-site', 'another word'];
const HERE = ['same-origin', 'none', undefined];

async function administered(t: Test, withTrail: boolean) {
    const server = await host();
    const { audit, ...parts } = systemOf(server);
    await register(server, { system: withTrail ? { ...parts, audit } : parts, screens: {} });
    await server.initialize();
    t.teardown(() => server.stop());
    const { id, key } = await server.plugins['token-auth'].create('of the operator');
    const { exporter } = await server.plugins['webhook-exporter'].exporters.create({ url: RECEIVER });
    const secrets: readonly string[] = [
        `/admin-console/keys/${id}`,
        `/admin-console/exporters/${exporter.id}?showUrl=true`,
        `/admin/exporters/${exporter.id}/edit`,
    ];
    const isShown = (payload: string): boolean => payload.includes(key) || payload.includes('s3cret-path');
    return { server, audit, secrets, isShown, exporterId: exporter.id };
}

function led(server: Server, method: string, url: string, site: string | undefined) {
    const headers = { ...admin, ...(site !== undefined && { 'sec-fetch-site': site, 'sec-fetch-mode': 'navigate' }) };
    return server.inject({ method, url, headers });
}

for (const withTrail of [true, false]) {
    t.test(
        `whom another site leads here is shown no secret, ${withTrail ? 'and leaves nothing in the trail' : 'without a trail too'}`,
        async (t) => {
            const { server, audit, secrets, isShown } = await administered(t, withTrail);
            const made = ['/admin-console/keys/text-of-the-attacker', '/admin/exporters/text-of-the-attacker/edit'];
            for (const url of [...secrets, ...made]) {
                for (const site of ELSEWHERE) {
                    for (const method of ['GET', 'HEAD']) {
                        const { statusCode, payload } = await led(server, method, url, site);
                        t.equal(statusCode, 403, `${method} ${url}, ${site}`);
                        t.notOk(isShown(payload), url);
                    }
                }
            }
            t.same(await audit.list(), []);

            for (const [index, url] of secrets.entries()) {
                for (const site of HERE) {
                    const { statusCode, payload } = await led(server, 'GET', url, site);
                    t.match([statusCode, isShown(payload)], [200, true], `${url}, ${site}`);
                    t.equal((await audit.list()).length, withTrail ? index * HERE.length + HERE.indexOf(site) + 1 : 0);
                }
            }
        },
    );
}

t.test('a refusal says so, in JSON and on a page that leads on; what shows no secret is for whoever follows a link', async (t) => {
    const { server, audit, secrets, exporterId } = await administered(t, true);
    const [key = '', , edit = ''] = secrets;
    const refused = await led(server, 'GET', key, 'cross-site');
    t.match(JSON.parse(refused.payload), { error: { code: 'FORBIDDEN', message: /^Another site has led here/ } });
    const page = await led(server, 'GET', edit, 'cross-site');
    t.match(page.payload, 'Another site has led here.');
    t.match(page.payload, '<a href="/admin/exporters">');
    for (const path of ['', '/overview', '/keys', '/exporters', `/exporters/${exporterId}`, '/deliveries', '/audit']) {
        t.ok((await led(server, 'GET', `/admin${path}`, 'cross-site')).statusCode < 400, `/admin${path}`);
    }
    for (const path of ['/keys', '/exporters', `/exporters/${exporterId}`, '/audit']) {
        t.equal((await led(server, 'GET', `/admin-console${path}`, 'cross-site')).statusCode, 200, `/admin-console${path}`);
    }
    t.same(await audit.list(), []);
});
