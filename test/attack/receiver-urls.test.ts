import t from 'tap';
import { scanwire } from '../support/scanwire.ts';
import { usedDataOf } from '../support/served.ts';

t.test('saves no URL that makes a command of an event, unless the deployment opened it', async (t) => {
    const data = await usedDataOf(t);
    const create = (url: string, allow = '', ...more: string[]) =>
        scanwire(['exporters', 'create', '--url', url, '--data', data, ...more], { env: { SCANWIRE_EGRESS_ALLOW: allow } });
    const refused: [string, RegExp][] = [
        ['http://redis.example.com:6379/t0ken', /has port 6379, one of those for databases: \*:6379 in egress\.allow/],
        ['http://node.example.com:2375/containers/t0ken', /port 2375, one of those for orchestrators/],
        ['http://kubernetes.default.svc/t0ken', /a name of the cluster/],
        ['http://jenkins:8080/t0ken', /a name without a dot/],
    ];
    for (const [url, message] of refused) {
        const { code, stderr } = await create(url);
        t.equal(code, 1, url);
        t.match(stderr, message);
        t.notMatch(stderr, 't0ken');
    }

    const opened = await create('http://jenkins:6379/t0ken#t0ken', 'jenkins,*:6379');
    t.match(opened, { code: 0, stdout: /^Warning {5}Messages and header values go out unencrypted/m });
    t.match(opened.stdout, /^Warning {5}The fragment of the URL/m);
    t.notMatch(opened.stdout, 't0ken');

    const again = await create('http://jenkins:6379/t0ken', 'jenkins,*:6379', '--trust', 'all', '--json');
    t.match(JSON.parse(again.stdout), { warnings: [{ code: 'plain_http' }, { code: 'same_url' }, { code: 'trust_without_tls' }] });
});
