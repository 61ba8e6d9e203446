import t, { type Test } from 'tap';
import { admin, host, register, systemOf } from '../plugins/admin-console/host.ts';
import { fieldsOf } from '../plugins/admin-console/visitor.ts';

/*
 * A name beside the host's, `blog.example.com`, sets cookies for `example.com`, which a browser sends together with those of the pages: whoever can do
 * that must neither keep people from the forms nor send any. Pages below others have the same cookie twice without anybody's doing.
 */

async function consoles(t: Test) {
    const server = await host();
    const system = systemOf(server);
    await register(server, { system, screens: {} });
    await register(server, {
        system,
        instance: 'tenants',
        owner: () => 'tenant',
        prefix: '/tenants',
        screens: { prefix: '/admin/tenants' },
    });
    await server.initialize();
    t.teardown(() => server.stop());
    return {
        /** The cookie that a browser without one gets from a page. */
        async given(path: string): Promise<string> {
            const { headers } = await server.inject({ url: path, headers: admin });
            return String([headers['set-cookie']].flat()[0]).split(';')[0] as string;
        },
        /** The status by which the only form of a page is taken, and whether the page has set a cookie. */
        async sent(page: string, action: string, fields: Record<string, string>, onPage: readonly string[], onPost = onPage) {
            const { payload, headers } = await server.inject({ url: page, headers: { ...admin, cookie: onPage.join('; ') } });
            const form = new URLSearchParams([
                ...fieldsOf(payload, action).filter(([name]) => name === 'formToken'),
                ...Object.entries(fields),
            ]);
            const answer = await server.inject({
                method: 'POST',
                url: action,
                headers: {
                    ...admin,
                    cookie: onPost.join('; '),
                    'content-type': 'application/x-www-form-urlencoded',
                    'sec-fetch-site': 'same-origin',
                },
                payload: form.toString(),
            });
            return [answer.statusCode, 'set-cookie' in headers];
        },
    };
}

const KEYS = ['/admin/keys', '/admin/keys', { name: 'nightly', scopes: 'inventory:read' }] as const;
const planted = (value: string): string => `scanwire-forms=${value}`;

t.test('cookies that a sibling has set keep nobody from the forms', async (t) => {
    const { given, sent } = await consoles(t);
    const own = await given('/admin/keys');
    const others = Array.from({ length: 40 }, (_, index) => planted(String(index).padStart(43, 'a')));
    const cases: readonly (readonly [string, readonly string[], (readonly string[])?])[] = [
        ['none', [own]],
        ['one like ours, before ours', [...others.slice(0, 1), own]],
        ['one like ours, behind ours', [own, ...others.slice(0, 1)]],
        ['one that is none', [planted('x'), own, planted('')]],
        ['many', [...others, own]],
        ['one for the path of the form', [own], [...others.slice(0, 1), own]],
        ['one for the path of the page', [...others.slice(0, 1), own], [own]],
        ['many for the path of the form', [own], [...others, own]],
        ['ours twice', [own, own]],
    ];
    for (const [title, onPage, onPost] of cases) {
        t.same(await sent(...KEYS, onPage, onPost), [201, false], title);
    }
});

t.test('a token that was made with none of the cookies is refused, and so many of them are looked at', async (t) => {
    const { given, sent } = await consoles(t);
    const own = await given('/admin/keys');
    const others = Array.from({ length: 40 }, (_, index) => planted(String(index).padStart(43, 'a')));
    t.same(await sent(...KEYS, [own], others.slice(0, 2)), [403, false]);
    t.same(await sent(...KEYS, [own], [planted('x'), planted('')]), [403, false]);
    t.same(await sent(...KEYS, [own], [own, ...others]), [403, false]);
});

t.test('pages below other pages take their forms, whichever were looked at first', async (t) => {
    const { given, sent } = await consoles(t);
    const [inner, outer] = [await given('/admin/tenants/exporters'), await given('/admin/keys')];
    const adding = ['/admin/tenants/exporters/new', '/admin/tenants/exporters', { moreHeaders: 'yes' }] as const;
    // A browser sends the cookie of the longer path first.
    t.same(await sent(...adding, [inner, outer]), [200, false]);
    t.same(await sent(...adding, [inner], [inner, outer]), [200, false], 'the page was loaded before the other cookie came');
    t.same(await sent(...KEYS, [outer]), [201, false]);
});
